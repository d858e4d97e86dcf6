"""The statements of write transactions, one file per subject of ``writer/commands``; only the writer imports them."""
