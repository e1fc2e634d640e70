"""Consistency checks of a file."""
