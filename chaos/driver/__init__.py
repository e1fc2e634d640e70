"""Real load on one machine, and simulated worlds on AWS."""
