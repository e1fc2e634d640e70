"""Faults: kills, full disks, clocks that jump."""
