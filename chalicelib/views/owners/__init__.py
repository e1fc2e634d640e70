"""The ownership of badges: claims, proofs, changes, hand-overs and deletions."""
