"""The URLs of users: the rules for them, and the addresses that they resolve to."""

from __future__ import annotations

import socket
import threading
from functools import partial
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.outgoing.urls import (
    STRANGERS_SLOTS,
    Allowed,
    BadUrlError,
    Record,
    UnreachableError,
    Url,
    check_url,
    permitted,
    resolve_for_stranger,
)
from simulation.resources import Names

NOTHING = Allowed()
LOOPBACK = Allowed.parse("127.0.0.0/8,::1")


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("https://example.com/hook", "https://example.com/hook"),
        ("https://example.com", "https://example.com/"),
        ("https://example.com?a=b", "https://example.com/?a=b"),
        ("HTTPS://EXAMPLE.com:443/A?B=C", "https://example.com/A?B=C"),
        ("https://example.com:8443/", "https://example.com:8443/"),
        ("https://example.com:/", "https://example.com/"),
        ("https://example.com./", "https://example.com/"),
        ("https://example.com/a#fragment", "https://example.com/a"),
        ("https://a_b.example.com/;p?x=@:/?[]", "https://a_b.example.com/;p?x=@:/?[]"),
        ("https://example.com/a%20b/%", "https://example.com/a%20b/%"),
        ('https://example.com/é?"<>', "https://example.com/%C3%A9?%22%3C%3E"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://BÜCHER.example/", "https://xn--bcher-kva.example/"),
        ("https://日本。example/", "https://xn--wgv71a.example/"),
        ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/"),
        ("https://1.1.1.1/", "https://1.1.1.1/"),
        ("https://1.1.1.1./", "https://1.1.1.1/"),
        ("https://\uff11.1.1.1/", "https://1.1.1.1/"),
        ("https://[2606:4700:4700:0::1111]:8443/", "https://[2606:4700:4700::1111]:8443/"),
        ("https://1.1.1.1.example/", "https://1.1.1.1.example/"),
    ],
)
def test_a_url_is_stored_in_one_form(given: str, stored: str) -> None:
    assert str(check_url(given, NOTHING)) == stored
    assert check_url(stored, NOTHING) == check_url(given, NOTHING)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "must begin with https://"),
        ("example.com/hook", "must begin with https://"),
        ("//example.com/hook", "must begin with https://"),
        ("http://example.com/", "must begin with https://"),
        ("http://1.1.1.1/", "must begin with https://"),
        ("ftp://example.com/", "must begin with https://"),
        ("file:///etc/passwd", "must begin with https://"),
        ("gopher://example.com/", "must begin with https://"),
        ("https:example.com", "has no host"),
        ("https:///hook", "has no host"),
        ("https://:443/", "has no host"),
        ("https://./", "has no host"),
        ("https://user@example.com/", "has a user name"),
        ("https://user:secret@example.com/", "has a user name"),
        ("https://example.com@127.0.0.1/", "has a user name"),
        ("https://@example.com/", "has a user name"),
        ("https://example.com:80/", "port must be 443 or 8443, not 80"),
        ("https://example.com:22/", "port must be 443 or 8443, not 22"),
        ("https://1.1.1.1:444/", "port must be 443 or 8443, not 444"),
        ("https://example.com:0/", "a number from 1 to 65535"),
        ("https://example.com:65536/", "a number from 1 to 65535"),
        ("https://example.com:-1/", "a number from 1 to 65535"),
        ("https://example.com:\uff14\uff14\uff13/", "a number from 1 to 65535"),
        ("https://example.com:443:443/", "a number from 1 to 65535"),
        ("https://example.com:" + "4" * 5000, "at most 2048"),
        ("https://example.com:" + "4" * 1900, "a number from 1 to 65535"),
        ("https://example.com/ a", "a space"),
        (" https://example.com/", "a space"),
        ("https://example.com/\n", "a control character"),
        ("https://exam\tple.com/", "a control character"),
        ("https://example.com/\x00", "a control character"),
        ("https://example.com/\x7f", "a control character"),
        ("https://example.com/\u2028", "a control character"),
        ("https://example.com/\ud800", "a control character"),
        ("https://exam\u200bple.com/", "a control character"),
        ("https://example.com\\@127.0.0.1/", "a backslash"),
        ("https://127.0.0.1%2f.example.com/", "not a valid DNS name"),
        ("https://%31%32%37.0.0.1/", "decimal"),
        ("https://exa%6dple.com/", "not a valid DNS name"),
        ("https://example..com/", "not a valid DNS name"),
        ("https://-example.com/", "not a valid DNS name"),
        ("https://example-.com/", "not a valid DNS name"),
        ("https://exam!ple.com/", "not a valid DNS name"),
        ("https://" + "a" * 64 + ".com/", "not a valid DNS name"),
        ("https://" + "a." * 125 + "com.x/", "not a valid DNS name"),
        ("https://" + "ü" * 64 + ".example/", "can't be encoded"),
        ("https://" + "ü." * 127 + "example/", "can't be encoded"),
        ("https://straße.example/", "in its xn-- form"),
        ("https://a\u200db.example/", "a control character"),
        ("https://ü℀.example/", "host is malformed"),
        ("https://ü..example/", "in its xn-- form"),
        ("https://ü\uff05.example/", "not a valid DNS name"),
        ("https://[::1/", "host is malformed"),
        ("https://::1/", "has no host"),
        ("https://[fe80::1%25eth0]/", "has a zone"),
        ("https://[fe80::1%eth0]/", "has a zone"),
        ("https://[2606:4700:4700::1111]x/", "a port or nothing"),
        ("https://[2606:4700:4700::1111].example.com/", "a port or nothing"),
    ],
)
def test_a_url_that_breaks_a_rule_is_refused_with_the_reason(url: str, said: str) -> None:
    with pytest.raises(BadUrlError) as refused:
        check_url(url, NOTHING)
    assert said in str(refused.value)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("inside", ["v1.x", "x", "1.1.1.1", "::g", ""])
def test_brackets_hold_an_ipv6_address(inside: str) -> None:
    with pytest.raises(BadUrlError, match=r"must contain an IPv6 address|host is malformed"):
        check_url(f"https://[{inside}]/", NOTHING)


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "10.0.0.1", "169.254.169.254", "0.0.0.0"),  # noqa: S104  nothing is bound
        *("[::1]", "[::ffff:127.0.0.1]", "[fd00:ec2::254]", "[64:ff9b::7f00:1]"),
        *("127.0.0.1.", "\uff11\uff12\uff17.0.0.1", "127。0。0。1"),
    ],
)
def test_an_address_is_judged_without_asking_anyone(host: str) -> None:
    with pytest.raises(BadUrlError, match="resolves to an address that is not public"):
        check_url(f"https://{host}/", NOTHING)


@pytest.mark.parametrize(
    "host",
    [
        *("0x7f.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "017700000001", "0177.0.0.1"),
        *("127.0.0.01", "1.1.1.1.1", "256.1.1.1", "0x", "1.0X1", "a.1", "a.0x7f", "127.1."),
    ],
)
def test_an_odd_spelling_of_an_ipv4_address_is_refused(host: str) -> None:
    for allowed in (NOTHING, LOOPBACK):
        with pytest.raises(BadUrlError, match="as four decimal numbers"):
            check_url(f"https://{host}/", allowed)


def test_a_url_has_at_most_2048_characters_as_given_and_as_stored() -> None:
    start = "https://example.com/"
    longest = start + "a" * (2048 - len(start))
    assert str(check_url(longest, NOTHING)) == longest
    # One é is six characters encoded, %C3%A9.
    for too_long in (longest + "a", longest[:-1] + "é", longest + "#"):
        with pytest.raises(BadUrlError, match="at most 2048"):
            check_url(too_long, NOTHING)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/", "http://127.0.0.1:5000/x", "https://127.0.0.1:1/", "http://[::1]/"]
)
def test_an_allowed_address_may_be_called_over_http_and_on_any_port(url: str) -> None:
    assert str(check_url(url, LOOPBACK)) == url


@pytest.mark.parametrize("url", ["http://10.0.0.1/", "https://10.0.0.1/", "http://1.1.1.1/"])
def test_an_allowed_network_allows_no_other(url: str) -> None:
    with pytest.raises(BadUrlError):
        check_url(url, LOOPBACK)


HOSTS = st.sampled_from(["example.com", "ü.example", "1.1.1.1", "[2606::1]", "127.0.0.1", "[::1]"])
URLS = st.one_of(
    st.text(),
    st.text().map("https://{}".format),
    st.builds("https://{}{}".format, HOSTS, st.text()),
    st.builds("https://{}/{}".format, st.text("%[]:.@0x1fÜé。-\\ ", max_size=12), st.text()),
)


@given(URLS, st.sampled_from([NOTHING, LOOPBACK]))
def test_any_text_is_refused_or_becomes_a_url_that_stays_as_it_is(
    text: str, allowed: Allowed
) -> None:
    message = ""
    try:
        url = check_url(text, allowed)
    except BadUrlError as refusal:
        message = str(refusal)
    if message:
        assert len(message) < 200
        return
    assert check_url(str(url), allowed) == url
    assert str(url).isascii()
    assert str(url).isprintable()
    assert " " not in str(url)
    assert len(str(url)) <= 2048


# Names


NAMED = check_url("https://example.com:8443/", NOTHING)


def test_the_addresses_of_a_name_are_public_and_each_is_given_once() -> None:
    names = Names(["1.1.1.1", "2606:4700::1", "1.1.1.1"])
    addresses = (ip_address("1.1.1.1"), ip_address("2606:4700::1"))
    assert permitted(NAMED, NOTHING, names) == addresses
    assert names.asked == [("example.com", 8443)]


@pytest.mark.parametrize(
    "addresses",
    [["10.0.0.1"], ["1.1.1.1", "10.0.0.1"], ["10.0.0.1", "1.1.1.1"], ["1.1.1.1", "fe80::1%1"]],
)
def test_one_private_address_refuses_a_name_and_is_not_disclosed(addresses: list[str]) -> None:
    with pytest.raises(BadUrlError, match=r"example\.com resolves to an address") as refused:
        permitted(NAMED, NOTHING, Names(addresses))
    assert not any(address in str(refused.value) for address in addresses)


@pytest.mark.parametrize("url", ["http://inside.example/", "https://inside.example:5000/"])
def test_http_and_other_ports_need_every_address_of_a_name_to_be_allowed(url: str) -> None:
    checked = check_url(url, LOOPBACK)
    assert permitted(checked, LOOPBACK, Names(["127.0.0.1"])) == (ip_address("127.0.0.1"),)
    for addresses in (["127.0.0.1", "1.1.1.1"], ["1.1.1.1"]):
        with pytest.raises(BadUrlError, match=r"https://|port"):
            permitted(checked, LOOPBACK, Names(addresses))


def test_an_address_is_not_resolved() -> None:
    names = Names([])
    url = check_url("https://1.1.1.1/", NOTHING)
    assert permitted(url, NOTHING, names) == (ip_address("1.1.1.1"),)
    assert names.asked == []


def test_a_name_that_does_not_resolve_is_unreachable() -> None:
    def unknown(*_: object, **__: object) -> list[Record]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    for resolver in (unknown, Names([])):
        with pytest.raises(UnreachableError, match=r"example\.com does not resolve"):
            permitted(NAMED, NOTHING, resolver)


def test_the_system_resolves_names_by_default() -> None:
    with pytest.raises(BadUrlError, match="localhost resolves to an address that is not public"):
        permitted(check_url("https://localhost/", NOTHING), NOTHING)


def test_a_url_shows_its_parts() -> None:
    assert check_url("https://[2606:4700::1]:8443/a?b", NOTHING) == Url(
        "https", "2606:4700::1", 8443, "/a?b", ip_address("2606:4700::1")
    )


def test_names_of_strangers_that_hang_hold_few_threads_until_they_are_resolved() -> None:
    url, released, began = check_url("https://example.com/", NOTHING), threading.Event(), []

    def stuck(*_: object, **__: object) -> list[Record]:
        began.append(threading.current_thread())
        assert released.wait(30)
        return []

    def refusal() -> str:
        with pytest.raises(UnreachableError) as refused:
            permitted(url, NOTHING, partial(resolve_for_stranger, stuck), 0.005)
        return str(refused.value)

    try:
        refusals = [refusal() for _ in range(40)]
        assert len(began) == 16
        assert refusals[15:17] == [
            "example.com was not resolved in time",
            "too many host names are being resolved: try again in 30 s",
        ]
        assert permitted(url, NOTHING, Names(["1.1.1.1"])) == (ip_address("1.1.1.1"),)
    finally:
        released.set()
        for thread in began:
            thread.join()
    slots = [STRANGERS_SLOTS.acquire(timeout=1) for _ in range(16)]
    assert all(slots)
    STRANGERS_SLOTS.release(16)
