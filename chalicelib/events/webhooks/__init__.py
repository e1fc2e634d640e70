"""Webhooks: which addresses may be called, the signature, and the request."""
