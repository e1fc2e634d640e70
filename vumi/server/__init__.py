"""The web server of one machine."""
