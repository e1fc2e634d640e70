"""The way of a view: `view` makes it, `storing` stores it, `folding` counts it."""
