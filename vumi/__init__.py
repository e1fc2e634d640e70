"""The program for one machine: the same routes and consumers, over one SQLite file."""
