"""Malformed input."""
