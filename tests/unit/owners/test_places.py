"""The places of proofs: an id has one URL or none, and never moves it to another host."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.owners import proving
from chalicelib.owners.proving import NotProvableError, Place
from chalicelib.settings import SettingsError

RAW = "https://raw.githubusercontent.com"


@pytest.mark.parametrize(
    ("badge_id", "url"),
    [
        ("octocat/hello", f"{RAW}/octocat/hello/HEAD/.vu-mi"),
        ("octocat/.github", f"{RAW}/octocat/.github/HEAD/.vu-mi"),
        ("octo_cat-1/a..b", f"{RAW}/octo_cat-1/a..b/HEAD/.vu-mi"),
        ("github.com/octocat/Hello.js", f"{RAW}/octocat/Hello.js/HEAD/.vu-mi"),
        ("gitlab.com/a/b", "https://gitlab.com/a/b/-/raw/HEAD/.vu-mi"),
        ("gitlab.com/john.doe/g/h/b", "https://gitlab.com/john.doe/g/h/b/-/raw/HEAD/.vu-mi"),
        ("https://Example.org", "https://Example.org/.vu-mi"),
        ("https://example.org/", "https://example.org/.vu-mi"),
        ("https://a-b.xn--p1ai/x?y=z#@/..", "https://a-b.xn--p1ai/.vu-mi"),
    ],
)
def test_an_id_has_the_place_of_its_host(badge_id: str, url: str) -> None:
    place = proving.find_place(badge_id, "")
    assert place == Place(url, is_listed=not badge_id.startswith("https://"))


HOSTS = (
    "example.org:8443 me@example.org example.org@evil.org example.org\\@evil.org example.org."
    " .example.org -a.example.org example..org localhost 127.0.0.1 [::1] 2130706433 10.1 münchen.de"
)


@pytest.mark.parametrize(
    "badge_id",
    [
        *("octocat", "/hello", "../hello", "-o/hello", "октокот/hello", f"{'a' * 100}/name"),
        *(f"octocat/{name}" for name in ("", "..", ".", "-", "hel lo", "\uff48ello", "a" * 101)),
        *(
            f"octocat/hello{end}"
            for end in ("/", "/more", "?x", "#x", "%2f", "@evil.org", "\\x", "\n")
        ),
        # An account of this name on GitHub proves nothing.
        *(f"{host}/hello" for host in ("example.org", "gitlab.com", "github.com")),
        "bitbucket.org/octocat/hello",
        "github.com.evil.org/octocat/hello",
        "github.com/octocat/hello/../other",
        *(f"gitlab.com/a/{rest}" for rest in ("-/raw/b", "../b", "%2e%2e/b")),
        *("http://example.org/", "HTTPS://example.org/", "https://example.org?/", "https:///x"),
        *(f"https://{host}/" for host in HOSTS.split()),
    ],
)
def test_any_other_id_can_not_be_proven(badge_id: str) -> None:
    with pytest.raises(NotProvableError, match="no proof is possible for "):
        proving.find_place(badge_id, "")


PIECES = ("a", "b-c", "example.org", "github.com", "gitlab.com", "https:", "..", ".", "-", "@", ":")
MORE = ("?", "#", "%2e", "\\", "", "xn--a", "127.0.0.1", "HEAD", "é", "_", "*", "{owner}", "{host}")
PATHS = st.lists(st.sampled_from(PIECES + MORE), min_size=1, max_size=6).map("/".join)


@given(PATHS | st.text(max_size=30))
def test_no_id_moves_the_url_to_another_host_or_path(badge_id: str) -> None:
    """A URL of GitHub has the owner of the id first, whatever the id is."""
    try:
        place = proving.find_place(badge_id, "")
    except NotProvableError:
        return
    url = urlsplit(place.url)
    assert (url.scheme, url.query, url.fragment, url.username, url.port) == (
        *("https", "", ""),
        *(None, None),
    )
    assert not {".", "..", ""} & set(url.path.split("/")[1:])
    if place.is_listed:
        own = badge_id.split("/")
        host, first = (own[0], own[1]) if "." in own[0] else ("github.com", own[0])
        real = {"raw.githubusercontent.com": "github.com"}.get(url.netloc, url.netloc)
        assert (real, url.path.split("/")[1]) == (host, first)
    else:
        assert url.netloc == badge_id.removeprefix("https://").split("/")[0]
        assert url.path == "/.vu-mi"


def test_an_operator_chooses_the_places() -> None:
    setting = " git.example.org/{group}/{name}=http://10.0.0.9:3000/{group}/raw/{name}.txt?a=b , "
    with pytest.raises(SettingsError, match="has a placeholder that its pattern does not have"):
        proving.find_place("git.example.org/a/b", setting)
    setting = "git.example.org/{group}/{name}=http://10.0.0.9:3000/{group}/{name}/raw/.vu-mi?a=b"
    place = proving.find_place("git.example.org/a/b/c", f" {setting} , ")
    assert place == Place("http://10.0.0.9:3000/a/b/c/raw/.vu-mi?a=b", is_listed=True)
    with pytest.raises(NotProvableError):
        proving.find_place("octocat/hello", setting)


def test_an_id_with_more_than_one_place_can_not_be_proven() -> None:
    two = "{owner}/{name}=https://a.example/{owner},x/{name}=https://b.example/{name}"
    assert proving.find_place("y/z", two).url == "https://a.example/y"
    with pytest.raises(NotProvableError, match=r"^a proof for x/z could be in 2 places"):
        proving.find_place("x/z", two)
    same = "{owner}/{name}=https://a.example/p,x/{name}=https://a.example/p"
    assert proving.find_place("x/z", same).url == "https://a.example/p"


def test_proofs_can_be_switched_off() -> None:
    with pytest.raises(NotProvableError, match="switched off here"):
        proving.find_place("octocat/hello", " off ")


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("on", "'on' is no pattern"),
        ("a/b=https://a.example/", "is no pattern with one of"),
        ("{owner}=", "'' is no URL with a path"),
        ("{owner}=https://a.example", "is no URL with a path"),
        ("{owner}=ftp://a.example/", "is no URL with a path"),
        ("{owner}=a.example/{owner}", "is no URL with a path"),
        ("{owner}=https:///x", "is no URL with a path"),
        ("{user}=https://a.example/{user}", "is no pattern"),
        ("{owner}.x=https://a.example/", "is no pattern"),
        ("*/{owner}=https://a.example/", "is no pattern"),
        ("{owner}/{owner}=https://a.example/", "is no pattern"),
        ("{owner}/{name}=https://{owner}.example/", "the host '{owner}.example' must be fixed"),
        ("{owner}/{name}=https://{name}/x", "the host '{name}' must be fixed"),
        ("{owner}/{name}=https://{host}/x", "has a placeholder that its pattern does not have"),
        ("{owner}=https://a.example/x-{owner}", "has a placeholder"),
        ("{owner}=https://a.example/{name}", "has a placeholder"),
        ("{owner}=https://a.example/?q={owner}", "has a placeholder"),
    ],
)
def test_a_malformed_setting_is_refused_with_its_part(setting: str, reason: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        proving.parse_places(f"https://{{host}}=https://{{host}}/.vu-mi,{setting}")
    assert str(refusal.value).startswith("PROOFS must be off, or PATTERN=URL, separated by commas")
    assert f"not {setting!r}" in str(refusal.value)
    assert reason in str(refusal.value)
