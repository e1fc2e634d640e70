"""The counts of other counters: their URLs, their answers as documented, and changed answers.

The answers are in the form of each service's source code: the badges of komarev by PHP's poser,
those of visitor-badge by pybadges, and the JSON of the others. Those of busuanzi, whose source is
not public, are in the form that EvanNotFound/vercount and soxft/busuanzi-sync read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pytest

from chalicelib.counting.ids import BadIdError
from chalicelib.outgoing.http_client import CallError, HttpReply
from chalicelib.settings import COUNTERS as DROP_INS
from vumi.errors import ReportedError
from vumi.operate.admin import other_counters
from vumi.operate.admin.other_counters import COUNTERS


def poser(label: str, value: str) -> bytes:
    """Return a badge of badges/poser, as komarev sends it: each text is there twice."""
    shadow = 'y="15" fill="#010101" fill-opacity=".3"'
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="137" height="20">
    <linearGradient id="b" x2="0" y2="100%"><stop offset="0" stop-opacity=".1"/></linearGradient>
    <g fill="#fff" text-anchor="middle" font-family="DejaVu Sans,Verdana,Geneva,sans-serif">
        <text x="42.5" {shadow}>{label}</text>
        <text x="42.5" y="14">{label}</text>
        <text x="109.5" {shadow}>{value}</text>
        <text x="109.5" y="14">{value}</text>
    </g>
</svg>""".encode()


def pybadges(label: str, value: str) -> bytes:
    """Return a badge of pybadges, as visitor-badge sends it."""
    shadow = 'fill="#010101" fill-opacity=".3" textLength="470.0"'
    return (
        '<svg height="20" width="107.6" xmlns="http://www.w3.org/2000/svg"><g font-size="110">'
        f'<text {shadow} y="150">{label}</text><text textLength="470.0" y="140">{label}</text>'
        f'<text {shadow} y="150">{value}</text><text textLength="385.0" y="140">{value}</text>'
        "</g></svg>"
    ).encode()


def encoded(document: object) -> bytes:
    return json.dumps(document).encode()


def jsonp(document: object) -> bytes:
    """Return the script of busuanzi, which calls the function of the page."""
    return b"try{BusuanziCallback_1(" + encoded(document) + b");}catch(e){}"


HITS_SH = encoded({"total": 4_321, "monthly": 50, "items": [{"data": [{"value": 1}]}]})
DWYL = {"label": "hits", "message": "4321", "schemaVersion": 1, "style": "flat"}
MOE = encoded({"name": "demo.page", "num": 4_321})
HISTORY = encoded({"total_hits": 4_321, "today_hits": 3, "history": [{"hit_count": 3}]})
COUNTS = {"site_uv": 9, "site_pv": 87_654, "page_pv": 4_321}
VERCOUNT = encoded({"status": "success", "message": "Data retrieved", "data": COUNTS})
LAOBI = "https://visitor-badge.laobi.icu/badge"
URLS = [
    "https://komarev.com/ghpvc/?username=octocat&label=views",
    "https://hits.sh/api/urns/github.com/silentsoft/hits",
    "https://hits.dwyl.com/dwyl/hits.json",
    f"{LAOBI}?page_id=jwenjian.visitor-badge&left_text=views&query_only=true",
    "https://count.getloli.com/record/@demo.page",
    "https://hitcounter.pythonanywhere.com/nocount?url=https%3A%2F%2Fexample.com%2Fa%3Fb%3Dc",
    "https://hitscounter.dev/api/history?url=https%3A%2F%2Fgithub.com%2Fdonaldzou%2Fhits-counter",
    "https://busuanzi.ibruce.info/busuanzi?jsonpCallback=BusuanziCallback_1",
    "https://events.vercount.one/api/v2/log?url=https%3A%2F%2Fme.example%2F%25E6%2596%2587%2F",
]
"""The requests for the pages of `RECORDED`, in the same order."""
RECORDED: list[tuple[str, str, bytes]] = [
    ("komarev", "octocat", poser("views", "4,321")),
    ("hits.sh", "https://github.com/silentsoft/hits/", HITS_SH),
    ("dwyl", "dwyl/hits", encoded(DWYL)),
    ("visitor-badge", "jwenjian.visitor-badge", pybadges("views", "4321")),
    ("moe-counter", "@demo.page", MOE),
    ("hit-counter", "https://example.com/a?b=c", b"4321"),
    ("hitscounter", "https://github.com/donaldzou/hits-counter", HISTORY),
    ("busuanzi", "me.example/a/", jsonp(COUNTS | {"version": 2.4})),
    ("vercount", "https://me.example/文/", VERCOUNT),
]
BODIES = {service: body for service, _, body in RECORDED}


class FakeClient:
    """A client with one answer, or a failure; `urls` records its requests."""

    def __init__(self, answer: Callable[[], HttpReply]) -> None:
        self.urls: list[str] = []
        self.referers: list[str] = []
        self._answer = answer

    def call(self, method: str, url: str, headers: Mapping[str, str]) -> HttpReply:
        assert (method, headers["Accept-Encoding"]) == ("GET", "identity")
        self.urls.append(url)
        self.referers.append(headers.get("Referer", ""))
        return self._answer()


def read(service: str, page: str, body: bytes, address: str = "") -> tuple[int, list[str]]:
    client = FakeClient(lambda: HttpReply(200, "", body))
    return other_counters.read(client, service, page, address), client.urls


def refusal(service: str, body: bytes | None, status: int = 200) -> str:
    client = FakeClient(lambda: HttpReply(status, "", body))
    with pytest.raises(ReportedError) as failure:
        other_counters.read(client, service, "octocat")
    return str(failure.value).removeprefix(f"{service} has not given the count of octocat: ")


@pytest.mark.parametrize(
    ("service", "page", "body", "url"),
    [(*one, url) for one, url in zip(RECORDED, URLS, strict=True)],
)
def test_a_count_is_read_by_one_request(service: str, page: str, body: bytes, url: str) -> None:
    assert read(service, page, body) == (4_321, [url])


@pytest.mark.parametrize("service", ["busuanzi", "vercount"])
def test_a_page_without_a_path_is_a_site(service: str) -> None:
    assert read(service, "https://me.example", BODIES[service])[0] == 87_654
    assert other_counters.badge_id_of(service, "Me.example") == "me.example"


@pytest.mark.parametrize(
    ("page", "referer"),
    [
        ("me.example", "https://me.example/"),
        ("http://me.example/文/?a=b#c", "https://me.example/%E6%96%87/"),
        ("https://me.example/%E6%96%87/", "https://me.example/%E6%96%87/"),
        ("me.example/a\r\nHost: b", "https://me.example/a%0D%0AHost%3A%20b"),
        ("me.example\r\nA", "https://me.example%0D%0Aa/"),
    ],
)
def test_busuanzi_finds_the_page_in_the_referer(page: str, referer: str) -> None:
    client = FakeClient(lambda: HttpReply(200, "", jsonp(COUNTS)))
    other_counters.read(client, "busuanzi", page)
    assert client.referers == [referer]


def test_every_service_has_a_recorded_answer() -> None:
    assert [service for service, *_ in RECORDED] == list(COUNTERS)
    assert set(DROP_INS) - set(COUNTERS) == {"seeyoufarm"}


COPY = "https://counter.example/base/"


@pytest.mark.parametrize(
    ("service", "page", "address", "url"),
    [
        ("komarev", "a", COPY, f"{COPY}ghpvc/?username=a&label=views"),
        ("komarev", "a&b=c", "", "https://komarev.com/ghpvc/?username=a%26b%3Dc&label=views"),
        ("dwyl", "ü/a b?c", "", "https://hits.dwyl.com/%C3%BC/a%20b%3Fc.json"),
        ("moe-counter", "a/../b", "", "https://count.getloli.com/record/@a%2F..%2Fb"),
    ],
)
def test_a_page_stays_in_its_place_of_the_url(
    service: str, page: str, address: str, url: str
) -> None:
    assert read(service, page, BODIES[service], address)[1] == [url]


NO_COUNT = "the count must be a whole number from 0 to 1000000000000000, not"
NO_BADGE = "the response is no badge with the label views, but has"


@pytest.mark.parametrize(
    ("service", "body", "reason"),
    [
        ("komarev", poser("views", "1.2k"), f"{NO_COUNT} '1.2k'"),
        ("komarev", poser("views", "1,23"), f"{NO_COUNT} '1,23'"),
        ("komarev", poser("Profile views", "5"), f"{NO_BADGE} ['Profile views', '5']"),
        (
            "komarev",
            b'<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>',
            f"{NO_BADGE} []",
        ),
        (
            "visitor-badge",
            pybadges("Error", "Count API Failed"),
            f"{NO_BADGE} ['Error', 'Count API Failed']",
        ),
        ("komarev", poser("views", "5") + poser("views", "6"), f"{NO_BADGE} ['views', '5', '6']"),
        ("komarev", b"\xff\xfe", "the response is not UTF-8"),
        ("hits.sh", b"<html>", "the response is not JSON"),
        ("hits.sh", b"[" * 100_000, "the response is not JSON"),
        ("hits.sh", b'{"total": ' + b"9" * 5_000 + b"}", "the response is not JSON"),
        ("hits.sh", b"[]", "the response has no field total"),
        ("hits.sh", b"{}", "the response has no field total"),
        ("hits.sh", b'{"total": 5.0}', f"{NO_COUNT} '5.0'"),
        ("hits.sh", b'{"total": true}', f"{NO_COUNT} 'True'"),
        (
            "dwyl",
            encoded({"schemaVersion": 1, "label": "hits", "message": "invalid url"}),
            f"{NO_COUNT} 'invalid url'",
        ),
        ("moe-counter", b'{"name": "a", "num": -1}', f"{NO_COUNT} '-1'"),
        ("busuanzi", encoded(COUNTS), "the response is not JSON"),
        ("vercount", encoded({"data": None}), "the response has no field data.site_pv"),
        ("hit-counter", b"1000000000000001", f"{NO_COUNT} '1000000000000001'"),
    ],
)
def test_an_answer_in_another_form_is_refused(service: str, body: bytes, reason: str) -> None:
    assert refusal(service, body) == reason


@pytest.mark.parametrize(
    ("service", "body"),
    [
        ("komarev", poser("views", "0")),
        ("hitscounter", b'{"total_hits": 0, "today_hits": 0, "history": []}'),
        ("dwyl", encoded(DWYL | {"message": "1"})),
        ("busuanzi", jsonp(COUNTS | {"site_pv": 1})),
    ],
)
def test_a_page_that_nobody_has_viewed_is_a_wrong_name(service: str, body: bytes) -> None:
    """A service that counts a reading answers 1 for it."""
    assert refusal(service, body) == "it has no views there; check the name"


def test_a_refusal_an_endless_answer_or_a_failure_is_said() -> None:
    assert refusal("hits.sh", b"", 301) == "answered 301, and redirects are not followed"
    assert refusal("hits.sh", b"", 404) == "answered 404"
    assert refusal("hits.sh", None) == (
        "the response can't be read to its end, or is longer than 1024 KiB"
    )

    def fail() -> HttpReply:
        raise CallError("no response within 10 s")

    with pytest.raises(ReportedError, match=r"^komarev .* octocat: no response within 10 s$"):
        other_counters.read(FakeClient(fail), "komarev", "octocat")


@pytest.mark.parametrize(
    ("service", "page", "badge_id"),
    [
        ("komarev", "octocat", "octocat/octocat"),
        ("hits.sh", "https://github.com/octocat/hello/", "github.com/octocat/hello"),
        ("moe-counter", "demo", "@demo"),
        ("moe-counter", "@demo", "@demo"),
        ("hit-counter", "https://example.com/a?b=c", "example.com/a"),
        ("vercount", "https://example.com/%E6%96%87/index.html#b?c", "example.com/文/"),
    ],
)
def test_a_page_has_the_id_that_its_url_has_here(service: str, page: str, badge_id: str) -> None:
    assert other_counters.badge_id_of(service, page) == badge_id


def test_a_page_without_an_id_is_refused() -> None:
    with pytest.raises(BadIdError):
        other_counters.badge_id_of("hits.sh", "https://")
