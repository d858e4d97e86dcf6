"""FLOOR: all messages between processes, and the public HTTP bodies."""
