"""The modules that are imported on first use, so that a cold start takes less time.

This is the only way to delay an import. Only the type checker reads the import with the types:

    if TYPE_CHECKING:
        from chalicelib.events import listing
    else:
        listing = lazy("chalicelib.events.listing")
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any


class _LazyModule(ModuleType):
    """A stand-in for a module, which imports it when one of its names is used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


def lazy(name: str) -> Any:
    """Return a stand-in for the module `name`, which is imported on first use."""
    return _LazyModule(name)
