"""The owner of a badge: claims, proofs, changes and the lives of an id."""
