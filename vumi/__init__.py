"""The embedded engine: the same handlers on one machine, over one SQLite file."""
