"""Compiled files for the zip: without them Lambda, which can write none, compiles at each start.

They are of one version of Python, so that only the one that runs on Lambda makes them.
"""

from __future__ import annotations

import importlib.util
import marshal
import sys
from pathlib import PurePosixPath

RUNTIME = "cpython-313"
"""The Python of `.chalice/resources.yaml`, as it names its compiled files."""
UNCHECKED = 0b01
"""By a hash of its source, and never held against it (PEP 552)."""
WITHOUT_REFERENCES = 2
"""The format of marshal whose bytes do not depend on what else has been compiled before."""


def is_made(runtime: str = RUNTIME) -> bool:
    """Whether this Python compiles for that one."""
    return sys.implementation.cache_tag == runtime


def name_of(source: str) -> str:
    """Where Python looks for the compiled file of a source."""
    path = PurePosixPath(source)
    return str(path.parent / "__pycache__" / f"{path.stem}.{sys.implementation.cache_tag}.pyc")


def compiled(name: str, source: bytes) -> bytes:
    """The compiled file of a source, the same bytes wherever this version of Python makes it.

    Source of its form: PEP 3147 and PEP 552. Raises `SyntaxError`.
    """
    code = compile(source, name, "exec", dont_inherit=True)
    head = importlib.util.MAGIC_NUMBER + UNCHECKED.to_bytes(4, "little")
    body = marshal.dumps(code, WITHOUT_REFERENCES)
    return head + importlib.util.source_hash(source) + body
