"""The knowledge graph in recall: an index in memory, the entities that a query is about, and the walk from them."""
