"""The threads of one machine, which deliver messages and changes and remove expired items."""
