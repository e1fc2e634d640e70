"""Worlds, storage in memory and faults, which tests, bench and chaos share."""
