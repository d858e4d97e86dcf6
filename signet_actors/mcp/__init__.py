"""The Model Context Protocol, by the official SDK, which is imported only where it is used."""
