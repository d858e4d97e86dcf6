"""All messages between processes."""
