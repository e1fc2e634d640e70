"""The URL of this server as visitors know it: the operator's, or that of the request."""

from __future__ import annotations

import pytest

from chalicelib.http.errors import BadRequestError
from chalicelib.http.messages import Request
from chalicelib.pages.badge_page import root_url
from chalicelib.settings import Settings, SettingsError


def of(public_url: str = "", **headers: str) -> str:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return root_url(Request("GET", "/s", headers=named), Settings(public_url=public_url))


@pytest.mark.parametrize(
    "host", ["example.com", "a-b.example:8080", "127.0.0.1:80", "[::1]", "[2001:db8::1]:443"]
)
def test_it_is_that_of_the_request(host: str) -> None:
    assert of(host=host) == f"http://{host}/"
    assert of(host=host, x_forwarded_proto="https") == f"https://{host}/"
    assert of(host=host, x_forwarded_proto="https, http") == f"http://{host}/"


@pytest.mark.parametrize(
    "host", ["", "a b", "a/b", "u@a", "a:", "a:123456", "<a>", "[::1", "\u00fc"]
)
def test_another_host_is_refused(host: str) -> None:
    with pytest.raises(BadRequestError, match="the header Host must be"):
        of(host=host)


def test_a_request_without_a_host_is_for_this_machine() -> None:
    """HTTP/1.0 needs no such header."""
    assert of() == "http://localhost/"


def test_the_operators_url_comes_first() -> None:
    assert of("https://a.example/", host="b.example") == "https://a.example/"


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("", ""),
        ("https://a.example", "https://a.example/"),
        ("https://a.example/", "https://a.example/"),
        ("http://[::1]:8000/base/path", "http://[::1]:8000/base/path/"),
    ],
)
def test_the_setting_may_end_with_a_slash(given: str, read: str) -> None:
    assert Settings.from_environment({"PUBLIC_URL": given}).public_url == read


@pytest.mark.parametrize(
    "given",
    ["a.example", "ftp://a.example", "https://", "https://a/?b", "https://a/<b>", "https://a b"],
)
def test_a_malformed_setting_is_refused_by_name(given: str) -> None:
    with pytest.raises(SettingsError) as refused:
        Settings.from_environment({"PUBLIC_URL": given})
    assert str(refused.value) == (
        "PUBLIC_URL must be a URL like https://badges.example.com/path, without a query,"
        f" not {given!r}"
    )
