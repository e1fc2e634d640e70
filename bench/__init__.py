"""Measurements of speed, cost and scale."""
