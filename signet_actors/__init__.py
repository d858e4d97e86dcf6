"""Signet Actors: the long-term memory of AI coding agents, as a tree of small processes."""

__version__ = "0.1.0"
