"""What the writer can be told to do: plain SQL inside the open transaction, one subject a file."""
