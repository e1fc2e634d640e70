"""The commands of one machine."""
