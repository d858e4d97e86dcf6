"""All SQL, written once for every engine, and the engine that runs it: SQLite, in ``store/sqlite``."""
