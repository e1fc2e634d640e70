"""A model of the scaling limits of the stack on AWS."""
