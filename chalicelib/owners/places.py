"""The places where proofs are looked for: a URL for each pattern of ids (the setting `PROOFS`).

An id comes from a stranger, so it must not move the URL to another host or path. A placeholder
matches whole segments of an id, of letters, digits and a few signs that need no encoding in a URL.
No segment is only dots. A URL has a fixed host or the host that the id itself names.

`{owner}` matches no dot, so that an id of another host, `example.org/name`, is no `{owner}/{name}`:
an account with the name of a host proves nothing about that host.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from urllib.parse import urlsplit

from chalicelib.owners.finding import OwnerError
from chalicelib.settings import SettingsError

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


class NotProvableError(OwnerError):
    """There is no place where a proof for this id could be."""

    code = "not_provable"


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

    def place(self, badge_id: str) -> Place | None:
        """Return the place for an id, or None if it does not match."""
        match = self.expression.fullmatch(badge_id)
        if match is None:
            return None
        url = self.template
        for name, value in match.groupdict().items():
            url = url.replace(f"{{{name}}}", value)
        return Place(url, is_listed="{host}" not in self.template)


def find(badge_id: str, setting: str) -> Place:
    """Return the place where the proof for an id is looked for.

    Raises `NotProvableError` if there is none, or more than one, and `SettingsError`.
    """
    rules = parse(setting)
    if not rules:
        raise NotProvableError("proofs are switched off here (PROOFS=off): ask the operator")
    places = {place for rule in rules if (place := rule.place(badge_id))}
    if len(places) > 1:
        raise NotProvableError(
            f"a proof for {badge_id} could be in {len(places)} places: ask the operator"
        )
    for place in places:
        return place
    patterns = " or ".join(rule.pattern for rule in rules)
    raise NotProvableError(f"no proof is possible for {badge_id}: it is not {patterns}")


@cache
def parse(setting: str) -> Sequence[Rule]:
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
