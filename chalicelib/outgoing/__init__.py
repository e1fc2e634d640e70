"""Requests to the URLs of users: the allowed addresses, the URLs, and the guarded client."""
