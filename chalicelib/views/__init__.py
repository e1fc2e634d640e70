"""The view-count badge: `api` takes a view, `put` stores it, `fold` turns it into the count."""
