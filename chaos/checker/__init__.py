"""The history of a run, and its checker."""
