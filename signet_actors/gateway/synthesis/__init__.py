"""``MEMORY.md`` made from memories: the file with its versions, and the work that makes it."""
