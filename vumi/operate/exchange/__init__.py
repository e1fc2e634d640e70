"""The export of an installation, and its import into another, on either engine."""
