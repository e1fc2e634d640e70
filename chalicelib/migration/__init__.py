"""The way in from other counters."""
