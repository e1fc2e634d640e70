"""Webhooks: the signature and the request."""
