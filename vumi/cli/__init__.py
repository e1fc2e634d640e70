"""The commands of the program `vumi`."""
