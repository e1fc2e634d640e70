"""How fast one machine and the handlers are."""
