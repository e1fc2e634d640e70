"""Measurements of the speed of one machine and of the handlers."""
