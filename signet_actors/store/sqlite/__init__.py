"""The SQLite engine: connections, transactions, snapshots, indexes, migrations, checks and backups."""
