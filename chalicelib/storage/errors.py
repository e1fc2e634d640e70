"""The errors of storage. `writes` and `ports` add those that say which part was not done."""

from __future__ import annotations


class StorageError(Exception):
    """The storage did not do as asked; what it was asked may or may not have been done."""


class Unavailable(StorageError):
    """The storage can't answer now: throttled, in conflict or out of reach. Ask again later."""


class Refused(StorageError):
    """The storage will never do this: the request is wrong, or a right or a resource is missing."""
