"""Events at a time: timers, countdowns, and what they are delivered to."""
