"""Compiled files for the zip, so that Lambda does not compile the sources at each cold start.

Compiled files work with one version of Python, so only the version that Lambda runs makes them.
"""

from __future__ import annotations

import importlib.util
import marshal
import sys
from pathlib import PurePosixPath

RUNTIME = "cpython-313"
"""The cache tag of the Python runtime in `.chalice/resources.yaml`."""
UNCHECKED_HASH = 0b01
"""The flag of a file that has a hash of its source and is never checked against it (PEP 552)."""
MARSHAL_VERSION = 2
"""The marshal format whose bytes do not depend on what was compiled before."""


def is_made(runtime: str = RUNTIME) -> bool:
    """Return whether this Python makes the compiled files of a runtime."""
    return sys.implementation.cache_tag == runtime


def name_of(source: str) -> str:
    """Return the path where Python looks for the compiled file of a source."""
    path = PurePosixPath(source)
    return str(path.parent / "__pycache__" / f"{path.stem}.{sys.implementation.cache_tag}.pyc")


def compile_source(name: str, source: bytes) -> bytes:
    """Compile a source. The bytes are the same on every machine with this version of Python.

    The format is that of PEP 3147 and PEP 552. Raises `SyntaxError`.
    """
    code = compile(source, name, "exec", dont_inherit=True)
    head = importlib.util.MAGIC_NUMBER + UNCHECKED_HASH.to_bytes(4, "little")
    body = marshal.dumps(code, MARSHAL_VERSION)
    return head + importlib.util.source_hash(source) + body
