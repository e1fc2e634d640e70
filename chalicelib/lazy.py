"""Modules that are imported when they are first used, so that a cold start does not pay for them.

The one way to put off an import. Types come from the import that only the type checker reads:

    if TYPE_CHECKING:
        from chalicelib.events import listing
    else:
        listing = lazy("chalicelib.events.listing")
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

_imported = cache(import_module)
"""Imports a module once; asking `import_module` again for each name takes time."""


class _LazyModule(ModuleType):
    """Stands for a module; looking at one of its names imports it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_imported(self.__name__), name)


def lazy(name: str) -> Any:
    """Return a stand-in for the module `name`, which is imported when it is first used."""
    return _LazyModule(name)
