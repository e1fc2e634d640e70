"""pip and uv over the wheels that `make test` has downloaded, so that the tests need no index."""

from __future__ import annotations

import os
import sys
from pathlib import Path

WHEELS = Path(sys.prefix) / "wheels"
"""The wheels of requirements/standalone.txt and requirements/build.txt."""


def environment() -> dict[str, str]:
    """Return the environment of a pip and a uv that ignore the settings of this machine."""
    assert WHEELS.is_dir(), f"{WHEELS} is missing: run make test"
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_FIND_LINKS": str(WHEELS),
        "PIP_NO_CACHE_DIR": "1",
        "PIP_NO_INDEX": "1",
        "UV_FIND_LINKS": str(WHEELS),
        "UV_NO_CACHE": "1",
        "UV_NO_CONFIG": "1",
        "UV_NO_INDEX": "1",
        "UV_OFFLINE": "1",
    }
