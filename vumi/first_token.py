"""The token of the first start, which is shown to its operator and to nobody else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TextIO

from vumi.storage.private_files import new_file, open_folder

FILE = "first-token"


def show_token(token: str, stream: TextIO, folder: Path) -> None:
    """Print the token to a terminal; otherwise write it to a file, because a stream may be a log.

    Raises `OSError`.
    """
    if stream.isatty():
        shown = f", shown this once: {token}"
    else:
        path = folder / FILE
        path.unlink(missing_ok=True)
        with open_folder(folder) as opened, os.fdopen(new_file(FILE, opened), "w") as file:
            file.write(f"{token}\n")
        shown = f": in {path}; store it elsewhere, and remove the file"
    print(f"Token for events and wallets{shown}", file=stream, flush=True)
