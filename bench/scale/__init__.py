"""A model of how far the stack on AWS scales."""
