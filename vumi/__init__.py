"""The program for one machine: the same routes and consumers, over one SQLite file."""

__version__ = "0.1.0"
"""The version of `pyproject.toml`."""
