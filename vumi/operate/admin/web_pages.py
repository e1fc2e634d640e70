"""The ids that the script of web pages, `count.js`, gives to a site and to its pages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

from chalicelib.counting import ids
from chalicelib.migration.drop_in import SCHEME

INDEX = "/index.html"
TAIL = re.compile("[?#]")


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page, by its site and its decoded path; without a path, it is the whole site."""

    site: str
    path: str

    @classmethod
    def of(cls, url: str) -> WebPage:
        """Return the page of a URL, whose scheme may be missing."""
        site, slash, path = TAIL.split(SCHEME.sub("", url, count=1))[0].partition("/")
        return cls(site.lower(), slash + unquote(path))

    @property
    def badge_id(self) -> str:
        """Return the id here. Raises `BadIdError`."""
        is_index = self.path.endswith(INDEX)
        path = self.path.removesuffix(INDEX) + "/" if is_index else self.path
        return ids.normalise(self.site + path)

    @property
    def url(self) -> str:
        """Return the URL of the page, or of the first page of the site."""
        return f"https://{quote(self.site, safe=':')}{quote(self.path or '/')}"
