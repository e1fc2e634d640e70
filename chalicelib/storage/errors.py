"""The errors of storage. `writes` and `ports` add those that name the part that was not done."""

from __future__ import annotations


class StorageError(Exception):
    """A call to the storage failed; it may or may not have been done."""


class UnavailableError(StorageError):
    """The storage can't answer now: throttled, in conflict or unreachable. Try again later."""


class StorageRefusedError(StorageError):
    """The storage will never do this: the call is wrong, or a right or a resource is missing."""
