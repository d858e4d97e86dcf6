"""What searchers read: one file for each subject, with its statements. Every function takes a ``Snapshot`` first."""
