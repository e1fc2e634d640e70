"""Webhooks: the allowed addresses, the signature, and the request."""
