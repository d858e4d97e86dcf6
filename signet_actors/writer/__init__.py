"""The only process that writes; it opens no network socket."""
