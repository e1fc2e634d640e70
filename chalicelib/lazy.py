"""The modules that are imported on first use, so that a cold start takes less time.

This is the only way to delay an import. Only the type checker reads the import with the types:

    if TYPE_CHECKING:
        from chalicelib.events import schedule
    else:
        schedule = lazy("chalicelib.events.schedule")
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

_imported = cache(import_module)
"""Imports a module once; asking `import_module` again for each name takes time."""


class _LazyModule(ModuleType):
    """A stand-in for a module, which imports it when one of its names is used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_imported(self.__name__), name)


def load(*names: str) -> None:
    """Import modules before their first use."""
    for name in names:
        _imported(name)


def lazy(name: str) -> Any:
    """Return a stand-in for the module `name`, which is imported on first use."""
    return _LazyModule(name)
