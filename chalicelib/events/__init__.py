"""Scheduled events: stored, queued by the sweep shortly before they are due, and delivered."""
