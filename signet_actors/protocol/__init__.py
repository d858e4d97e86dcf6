"""FLOOR: everything one process may say to another, and the public HTTP bodies."""
