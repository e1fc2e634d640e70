"""The public counts of other counters, each read by one request of the guarded client.

A badge here continues from them. The formats are those of the services' source code and documents;
a response in any other form is refused, and so is a count that is rounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote, unquote

from chalicelib.badges import options
from chalicelib.counting import ids
from chalicelib.migration import drop_in
from chalicelib.outgoing.http_client import CallError, HttpReply, describe_refusal
from vumi.errors import ReportedError

MAX_REPLY_BYTES = 1024 * 1024
"""Some answers have the whole history, with some dozens of bytes for each day."""
FOUND = 200
SHOWN = 40
"""Characters of a wrong answer in an error message."""
LABEL = "views"
"""The label of the badges that are read, where a service lets its callers choose one."""
TEXT = re.compile(r"<text\b[^<>]*>\s*([^<>]*?)\s*</text>")
GROUPS = re.compile("[0-9]{1,3}(,[0-9]{3})+")
"""A whole number with commas between thousands."""
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
        site, slash, path = TAIL.split(drop_in.SCHEME.sub("", url, count=1))[0].partition("/")
        return cls(site.lower(), slash + unquote(path))

    @property
    def badge_id(self) -> str:
        """Return the id that `count.js` gives to the page. Raises `BadIdError`."""
        is_index = self.path.endswith(INDEX)
        path = self.path.removesuffix(INDEX) + "/" if is_index else self.path
        return ids.normalise(self.site + path)

    @property
    def url(self) -> str:
        """Return the URL of the page, or of the first page of the site."""
        return f"https://{quote(self.site, safe=':')}{quote(self.path or '/')}"


class Client(Protocol):
    """A client of public URLs: `chalicelib.outgoing.http_client.HttpClient`."""

    def call(self, method: str, url: str, headers: Mapping[str, str]) -> HttpReply:
        """Send a request. Raises `CallError`."""


@dataclass(frozen=True, slots=True)
class Counter:
    """A service: its address, the path of a count by a name of `QUOTED`, and the response's form.

    `counts` says that the service counts a view for each reading. A counter of web pages has the
    form of a site's count too, in `parse_site`; `with_referer` names the page in this header.
    """

    address: str
    path: str
    parse: Callable[[bytes], int]
    counts: bool = False
    parse_site: Callable[[bytes], int] | None = None
    with_referer: bool = False


def badge_id_of(service: str, page: str) -> str:
    """Return the id of a page here: that of `DROP_IN` or `count.js`. Raises `BadIdError`."""
    if COUNTERS[service].parse_site:
        return WebPage.of(page).badge_id
    return ids.normalise(drop_in.SERVICES[service].to_id(page))


def read(client: Client, service: str, page: str, address: str = "") -> int:
    """Read the count of a page, from the service or from a copy of it at `address`.

    Raises `ReportedError`, which names the service, the page and the reason.
    """
    counter = COUNTERS[service]
    path = counter.path.format(**{name: quoted(page) for name, quoted in QUOTED.items()})
    url = (address or counter.address).rstrip("/") + path
    parse = (not WebPage.of(page).path and counter.parse_site) or counter.parse
    referer = {"Referer": WebPage.of(page).url} if counter.with_referer else {}
    failed = f"{service} has not given the count of {page}"
    try:
        count = parse(_fetch(client, url, {"Accept-Encoding": "identity", **referer}))
    except (CallError, ValueError) as reason:
        raise ReportedError(f"{failed}: {reason}") from None
    if count <= counter.counts:  # a service may count the reading itself
        raise ReportedError(f"{failed}: it has no views there; check the name")
    return count


def _fetch(client: Client, url: str, headers: Mapping[str, str]) -> bytes:
    """Return the body of an answer. Raises `CallError`, and `ValueError` for another status."""
    reply = client.call("GET", url, headers)
    if reply.status != FOUND:
        raise ValueError(describe_refusal(reply.status))
    if reply.body is None:
        size = MAX_REPLY_BYTES // 1024
        raise ValueError(f"the response can't be read to its end, or is longer than {size} KiB")
    return reply.body


def _decode(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise ValueError("the response is not UTF-8") from None


def parse_text(body: bytes) -> int:
    """Return a count that is the whole answer."""
    return _number(_decode(body).strip())


def parse_badge(body: bytes) -> int:
    """Return the count of an SVG badge whose label is `LABEL`.

    Each text of a badge is there twice, because it has a shadow.
    """
    texts = list(dict.fromkeys(TEXT.findall(_decode(body))))
    if len(texts) != 2 or texts[0] != LABEL:  # noqa: PLR2004  a label and a count
        raise ValueError(
            f"the response is no badge with the label {LABEL}, but has {_shown(texts)}"
        )
    return _number(texts[1])


def json_field(*names: str, callback: str = "") -> Callable[[bytes], int]:
    """Return the parser of a JSON object with the count in a field, or in a field of a field.

    With a `callback`, the object is the argument of a call in a script.
    """

    def parse(body: bytes) -> int:
        text = _decode(body)
        if callback:
            text = text.partition(f"{callback}(")[2].partition(")")[0]
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            raise ValueError("the response is not JSON") from None
        for name in names:
            if not isinstance(document, dict) or name not in document:
                raise ValueError(f"the response has no field {'.'.join(names)}")
            document = document[name]
        return _number(str(document))

    return parse


def _number(text: str) -> int:
    """Return a whole number, with or without commas between thousands."""
    plain = text.replace(",", "") if GROUPS.fullmatch(text) else text
    try:
        return options.base(plain)
    except ValueError:
        raise ValueError(
            f"the count must be a whole number from 0 to {options.MAX_BASE}, not {_shown(text)}"
        ) from None


def _shown(value: object) -> str:
    return repr(value)[:SHOWN]


CALLBACK = "BusuanziCallback_1"
"""A name like those of busuanzi's own script."""
QUOTED: Mapping[str, Callable[[str], str]] = {
    "whole": lambda page: quote(page, safe=""),
    "path": lambda page: quote(page, safe="/"),
    "bare": lambda page: quote(drop_in.without_scheme(page), safe="/"),
    "user": lambda page: quote(page.removeprefix("@"), safe=""),
    "url": lambda page: quote(WebPage.of(page).url, safe=""),
}
"""The forms of a page in the path of a service."""
COUNTERS: Mapping[str, Counter] = {
    "komarev": Counter(
        "https://komarev.com", f"/ghpvc/?username={{whole}}&label={LABEL}", parse_badge
    ),
    "hits.sh": Counter("https://hits.sh", "/api/urns/{bare}", json_field("total")),
    "dwyl": Counter("https://hits.dwyl.com", "/{path}.json", json_field("message"), counts=True),
    "visitor-badge": Counter(
        "https://visitor-badge.laobi.icu",
        f"/badge?page_id={{whole}}&left_text={LABEL}&query_only=true",
        parse_badge,
    ),
    "moe-counter": Counter(
        "https://count.getloli.com", "/record/@{user}", json_field("num"), counts=True
    ),
    "hit-counter": Counter(
        "https://hitcounter.pythonanywhere.com", "/nocount?url={whole}", parse_text
    ),
    "hitscounter": Counter(
        "https://hitscounter.dev", "/api/history?url={whole}", json_field("total_hits")
    ),
    "busuanzi": Counter(
        "https://busuanzi.ibruce.info",
        f"/busuanzi?jsonpCallback={CALLBACK}",
        json_field("page_pv", callback=CALLBACK),
        counts=True,
        parse_site=json_field("site_pv", callback=CALLBACK),
        with_referer=True,
    ),
    "vercount": Counter(
        "https://events.vercount.one",
        "/api/v2/log?url={url}",
        json_field("data", "page_pv"),
        parse_site=json_field("data", "site_pv"),
    ),
}
"""The services whose counts can be read. hits.seeyoufarm.com, for one, no longer answers."""
