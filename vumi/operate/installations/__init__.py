"""The installations that commands work on: the file of one machine, and a stack on AWS."""
