"""The fault harness: real load, faults without end, and a checker over what was seen of it."""
