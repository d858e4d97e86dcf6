"""The migrations: numbered SQL files, applied in order by ``store.migrate``."""
