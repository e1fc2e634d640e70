"""The view-count badge: `routes` takes a view, `storing` stores it, `folding` counts it."""
