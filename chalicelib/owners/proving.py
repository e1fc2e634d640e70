"""The proof of ownership: whoever can put a line into a public file owns the badge of its id.

The requester has a random key, and the file has a digest of it, the challenge. So readers of the
file can't use the proof, and nothing is stored until it is found. The owner's secret is derived
from the key, so a repeated request has the same response.

A proof takes its name from a badge whose owner has not proven it: the name becomes a badge of its
own. If the badge is stored under this name, the proof takes the badge, and the names that its owner
has proven become badges of their own. A badge without an owner, or that was last proven by this
name, or of which the requester has the secret, is taken with all names.

An id is looked for at most once in `LOOK_SECONDS`, and everybody shares what was found. So a
stranger who asks all the time delays the owner by this time at most, and can't lock them out.

The setting `PROOFS` has the places: a URL for each pattern of ids. An id comes from a stranger, so
it must not move the URL to another host or path. A placeholder matches whole segments of an id, of
letters, digits and a few signs that need no encoding in a URL. No segment is only dots. A URL has a
fixed host or the host that the id itself names.

`{owner}` matches no dot, so that an id of another host, `example.org/name`, is no `{owner}/{name}`:
an account with the name of a host proves nothing about that host.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from chalicelib.counting.summary import read
from chalicelib.http.errors import ClientError
from chalicelib.http.tokens import digest
from chalicelib.lazy import lazy
from chalicelib.owners import claiming
from chalicelib.owners.finding import OwnedBadge, OwnerError, TakenError, look_up
from chalicelib.settings import SettingsError
from chalicelib.storage.conditions import attr, unchanged
from chalicelib.storage.items import Item, Key, Value, number, text
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import ConditionFailedError, Put, Write
from chalicelib.units import Seconds

if TYPE_CHECKING:
    from chalicelib.outgoing import fetching
    from chalicelib.outgoing.fetching import Fetcher
else:
    fetching = lazy("chalicelib.outgoing.fetching")

FILE = ".vu-mi"
GITHUB = f"https://raw.githubusercontent.com/{{owner}}/{{name}}/HEAD/{FILE}"
DEFAULT = ",".join(
    (
        f"{{owner}}/{{name}}={GITHUB}",
        f"github.com/{{owner}}/{{name}}={GITHUB}",
        f"gitlab.com/{{group}}/{{name}}=https://gitlab.com/{{group}}/{{name}}/-/raw/HEAD/{FILE}",
        f"https://{{host}}=https://{{host}}/{FILE}",
        f"https://{{host}}/*=https://{{host}}/{FILE}",
    )
)
OFF = "off"
LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
SEGMENT = "[A-Za-z0-9_][A-Za-z0-9._-]{0,99}"
PLACEHOLDERS = {
    "{owner}": "[A-Za-z0-9][A-Za-z0-9_-]{0,98}",
    "{name}": "(?=[._-]*[A-Za-z0-9])[A-Za-z0-9._-]{1,100}",
    "{group}": f"{SEGMENT}(?:/{SEGMENT}){{0,19}}",
    "{host}": rf"(?:{LABEL}\.)+(?=[0-9-]*[A-Za-z]){LABEL}",
}
"""Each placeholder, and the part of an id that it matches."""
REST = "*"
"""The last segment of a pattern that matches any rest of an id."""

PARTITION = "PROOF#"
SORT = "PROOF"
LOOK_SECONDS = 10
"""The shortest time between two fetches for one id."""
KEEP_SECONDS = 3_600
"""The time after which TTL removes what was found."""
MAX_CHALLENGES = 100
"""Challenges of a file that are kept for the requests of others."""
KEY = re.compile("[A-Za-z0-9_-]{43}")
"""A key as `new_token` makes it."""
CHALLENGE = re.compile("vu-mi-[0-9a-f]{64}")
MISSING = "the file does not have this line"


class NotProvableError(OwnerError):
    """There is no place where a proof for this id could be."""

    code = "not_provable"


class NotProvenError(OwnerError):
    """The file of a proof does not have the challenge."""

    status = 409
    code = "not_proven"

    def __init__(self, challenge: str, url: str, found: str) -> None:
        super().__init__(
            f"the proof was not found: {found}. Add the line {challenge} to the file at {url}, and"
            " send the same request again"
        )
        self.details = {"challenge": challenge, "url": url, "found": found}


class TooSoonError(ClientError):
    """The proof of this id was looked for a moment ago."""

    status = 429
    code = "too_many_requests"

    def __init__(self, seconds: int, found: str) -> None:
        super().__init__(
            f"the proof of this id was looked for a moment ago ({found}): try again in {seconds} s"
        )
        self.headers = {"Retry-After": str(seconds)}


@dataclass(frozen=True, slots=True)
class Place:
    """The URL of a proof. The operator has named its host if `is_listed`, else the id has."""

    url: str
    is_listed: bool


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern of ids, and the template of the URL for those that match."""

    pattern: str
    template: str
    expression: re.Pattern[str]

    def place(self, match: re.Match[str]) -> Place:
        """Return the place for an id that matches."""
        url = self.template
        for name, value in match.groupdict().items():
            url = url.replace(f"{{{name}}}", value)
        return Place(url, is_listed="{host}" not in self.template)


def find_place(badge_id: str, setting: str) -> Place:
    """Return the place where the proof for an id is looked for.

    Raises `NotProvableError` if there is none, or more than one, and `SettingsError`.
    """
    rules = parse_places(setting)
    if not rules:
        raise NotProvableError("proofs are switched off here (PROOFS=off): ask the operator")
    matches = ((rule, rule.expression.fullmatch(badge_id)) for rule in rules)
    places = {rule.place(match) for rule, match in matches if match}
    if len(places) > 1:
        raise NotProvableError(
            f"a proof for {badge_id} could be in {len(places)} places: ask the operator"
        )
    for place in places:
        return place
    patterns = " or ".join(rule.pattern for rule in rules)
    raise NotProvableError(f"no proof is possible for {badge_id}: it is not {patterns}")


@cache
def parse_places(setting: str) -> Sequence[Rule]:
    """Parse `PROOFS`: PATTERN=URL, separated by commas. Raises `SettingsError`.

    An empty text means the default, `off` no place at all.
    """
    if setting.strip() == OFF:
        return ()
    parts = (part.strip() for part in (setting.strip() or DEFAULT).split(","))
    return tuple(_parse_rule(part) for part in parts if part)


def _parse_rule(part: str) -> Rule:
    pattern, _, template = part.partition("=")
    segments = pattern.split("/")
    used = [one for one in segments if one in PLACEHOLDERS]
    named = segments[:-1] if segments[-1] == REST else segments
    is_known = all(one in PLACEHOLDERS or _is_literal(one) for one in named)
    if not (used and is_known and len(set(used)) == len(used)):
        raise _error(part, f"{pattern!r} is no pattern with one of {', '.join(PLACEHOLDERS)}")
    _check_template(part, template, used)
    return Rule(pattern, template, re.compile("/".join(map(_to_expression, segments)), re.DOTALL))


def _is_literal(segment: str) -> bool:
    return not set(segment) & set("{}*")


def _to_expression(segment: str) -> str:
    if segment == REST:
        return ".*"
    if segment in PLACEHOLDERS:
        return f"(?P<{segment[1:-1]}>{PLACEHOLDERS[segment]})"
    return re.escape(segment)


def _check_template(part: str, template: str, used: Iterable[str]) -> None:
    """Check that a URL has its placeholders in its path, as segments, or is of `{host}`."""
    scheme, separator, rest = template.partition("://")
    host, *path = rest.split("/")
    if scheme not in {"https", "http"} or not separator or not host or not path:
        raise _error(part, f"{template!r} is no URL with a path")
    if host != "{host}" and not (_is_literal(host) and urlsplit(template).hostname):
        raise _error(part, f"the host {host!r} must be fixed, or {{host}}")
    allowed = set(used)
    if not all(one in allowed or _is_literal(one) for one in (*path, *({host} & {"{host}"}))):
        raise _error(part, f"{template!r} has a placeholder that its pattern does not have")


def _error(part: str, reason: str) -> SettingsError:
    return SettingsError(
        f"PROOFS must be {OFF}, or PATTERN=URL, separated by commas, not {part!r}: {reason}"
    )


@dataclass(frozen=True, slots=True)
class Proof:
    """A proof that is asked for: the id, the requester's key, and their own digest or none."""

    badge_id: str
    key: str = field(repr=False)
    own_digest: str = ""

    @property
    def challenge(self) -> str:
        """Return the line that the file must have; it does not tell the key."""
        text = f"vu-mi proof 1\n{self.badge_id}\n{self.key}"
        return "vu-mi-" + hashlib.sha256(text.encode()).hexdigest()

    @property
    def secret(self) -> str:
        """Return the secret of the badge, or an empty text if the owner has a digest."""
        if self.own_digest:
            return ""
        message = f"vu-mi secret 1\n{self.badge_id}"
        derived = hmac.digest(self.key.encode(), message.encode(), "sha256")
        return base64.urlsafe_b64encode(derived[: claiming.SECRET_BYTES]).decode()

    @property
    def digest(self) -> str:
        return self.own_digest or digest(self.secret)


@dataclass(frozen=True, slots=True)
class ProofSearch:
    """The search for proofs, with what it needs: the clocks of this process, and the network."""

    table: Table
    fetcher: Callable[[], Fetcher]
    clock: Callable[[], Seconds]

    def prove(self, proof: Proof, place: Place, now: Seconds) -> None:
        """Give an id to whoever has proven it, or the badge that has it.

        A repeated request of the owner has the same response, without a search. Raises
        `OwnerError`, `TooSoonError`, `BusyError` and `StorageError`.
        """
        name, table = proof.badge_id, self.table
        prepare = partial(prepare_taking, table, name=name, own_digest=proof.digest, now=now)
        if any(prepare(look_up(table, name))):
            self._find(proof, place)
            claiming.replace_owner(table, name, prepare)

    def _find(self, proof: Proof, place: Place) -> None:
        """Return if the proof is there. Raises `NotProvenError` and `TooSoonError`."""
        key, now = Key(PARTITION + proof.badge_id, SORT), int(self.clock())
        earlier = self.table.get(key) or {}
        wait = LOOK_SECONDS - abs(now - number(earlier, "at"))
        if wait > 0:
            challenges = earlier.get("challenges")
            if isinstance(challenges, list) and proof.challenge in challenges:
                return
            raise TooSoonError(wait, text(earlier, "found") or "it is being looked for")
        fetcher = self.fetcher()
        look = key.item(at=now, ttl=now + KEEP_SECONDS)
        try:
            self.table.write(Put(look, unchanged("at", number(earlier, "at"))))
        except ConditionFailedError:
            raise TooSoonError(LOOK_SECONDS, "it is being looked for") from None
        lines, found = _fetch(fetcher, place)
        self.table.write(Put({**look, "found": found, "challenges": [*lines[:MAX_CHALLENGES]]}))
        if proof.challenge not in lines:
            raise NotProvenError(proof.challenge, place.url, found)


def _fetch(fetcher: Fetcher, place: Place) -> tuple[Sequence[str], str]:
    """Return the challenges in the file at a place, and a description of what was found."""
    try:
        body = fetcher.fetch(place.url, is_listed=place.is_listed)
    except fetching.FetchError as failure:
        return (), str(failure)
    lines = (line.strip() for line in body.decode(errors="replace").splitlines())
    return [line for line in lines if CHALLENGE.fullmatch(line)], MISSING


def prepare_taking(
    table: Table, owned: OwnedBadge, name: str, own_digest: str, now: Seconds
) -> Iterator[Write]:
    """Give a name to whoever has proven it; nothing is left to write if they have it already.

    The lives of detached names go on, so that no view is lost that was stored under an alias and is
    not folded. Raises `TakenError`.
    """
    is_holder = owned.is_claimed and hmac.compare_digest(owned.digest, own_digest)
    if is_holder and name in owned.proofs:
        return
    detached = {} if is_holder else _find_detached(owned, name, own_digest)
    names: list[Value] = [one for one in owned.names[1:] if one not in detached]
    earlier: list[Value] = [one for one in owned.proofs if one not in {name, *detached}]
    if name in detached:
        yield claiming.update_owner(owned, {"names": names})
    else:
        owner: Item = {"digest": own_digest, "proven": name, "names": names, "earlier": earlier}
        yield from claiming.prepare_replacement(table, owned, owner, now)
    for one, its_digest in detached.items():
        yield read(table, one).update(now, {}, remove=("alias",))
        item = claiming.owner_item(one, its_digest, now)
        yield Put({**item, "proven": one}, attr("SK").missing())
        yield from claiming.move_key(OwnedBadge(one), its_digest)


def _find_detached(owned: OwnedBadge, name: str, own_digest: str) -> Mapping[str, str]:
    """Return the aliases that leave a badge of another owner, with the digests of their owners."""
    if name in owned.proofs[:-1]:
        raise TakenError(
            f"the owner of {name} has proven a later name of the badge: ask the operator"
        )
    if name in owned.proofs or not owned.is_claimed:
        return {}
    if name == owned.badge_id:
        return dict.fromkeys(owned.proofs, owned.digest)
    return {name: own_digest}
