"""The configuration: its schema, its file, its environment, and the places of a workspace."""
