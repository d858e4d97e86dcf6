"""The adapter to SQLite: the only directory that imports apsw and sqlite_vec, and the only one with SQL."""
