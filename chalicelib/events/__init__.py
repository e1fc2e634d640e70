"""Events at a time: accepted, swept to the queue when they are due, and fired once."""
