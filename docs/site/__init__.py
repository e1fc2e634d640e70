"""The site of the documents: `make docs` builds it in `build/docs`."""
