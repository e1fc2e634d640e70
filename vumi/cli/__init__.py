"""The program `vumi` and its commands."""
