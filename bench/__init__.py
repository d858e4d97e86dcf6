"""Programs that run the real daemon: the demonstration, load tests and recall quality."""
