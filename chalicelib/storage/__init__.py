"""The ports of storage, and the values that pass through them."""
