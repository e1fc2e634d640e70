"""The jobs of an operator, the same on both engines."""
