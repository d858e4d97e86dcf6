"""Questions other than recall, one subject a file: plain SELECTs under the caller's read policy."""
