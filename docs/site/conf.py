"""The settings of Sphinx for the site: https://www.sphinx-doc.org/en/master/usage/configuration.html."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

project = "vu-mi"
author = "the authors of vu-mi"
copyright = "the authors of vu-mi"  # noqa: A001  Sphinx's name
extensions = ["myst_parser"]
exclude_patterns: list[str] = []
suppress_warnings = [
    "misc.highlighting_failure",  # an example of JSON may have … in place of a part
    "myst.header",  # a document may leave out a level
    "toc.not_included",  # README.md, and the examples, which their index lists
]
myst_heading_anchors = 6
html_theme = "furo"
html_title = "vu-mi"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_last_updated_fmt = None
html_theme_options = {"navigation_with_keys": False, "top_of_page_buttons": []}
templates_path: list[str] = []
pygments_style = "friendly"
pygments_dark_style = "native"


def copy_pictures(app: Any, _: Exception | None) -> None:
    """Copy the pictures to their places, where the HTML inside Markdown names them."""
    for picture in (
        path for kind in ("svg", "png", "webp") for path in app.srcdir.rglob(f"*.{kind}")
    ):
        copy = Path(app.outdir, picture.relative_to(app.srcdir))
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(picture, copy)


def setup(app: Any) -> None:
    """Register the steps of this project."""
    app.connect("build-finished", copy_pictures)
