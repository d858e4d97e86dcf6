"""Numbered SQL files, applied in order; see ``store.migrate``."""
