"""Backups of one machine: made, kept and restored."""
