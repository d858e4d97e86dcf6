"""The configuration: schema, file, environment, and the paths of a workspace."""
