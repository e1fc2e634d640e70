"""The threads of one machine: they deliver messages and changes, and remove what has expired."""
