"""Queries other than recall, one file per subject: plain SELECTs under the caller's read policy."""
