"""The operators' work on both engines: exports, imports, backups, checks, tokens, overviews."""
