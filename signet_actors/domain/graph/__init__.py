"""Rules of the knowledge graph."""
