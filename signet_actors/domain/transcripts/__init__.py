"""Transcripts of sessions: the formats of harnesses, turns, and what is stored of them."""
