"""Storage on one machine, over SQLite and files."""
