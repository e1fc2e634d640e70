"""The fault harness: real load, many faults, and a checker of the recorded history."""
