"""The threads of one machine: delivery, expiry, folding."""
