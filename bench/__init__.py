"""Programs that run the daemon for real: the demonstration, load, and recall quality."""
