"""The URLs of other counters, so that a badge moves here by a change of its host name alone.

Each service has its paths, the id of a page here, and its options that have counterparts here. Its
other options are ignored, and so are values that are wrong here, because lines on other people's
pages have them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from chalicelib.badges import options
from chalicelib.badges.responses import IMAGE, respond
from chalicelib.counting.ids import BadIdError
from chalicelib.http import errors
from chalicelib.http.errors import BadRequestError, NotFoundError
from chalicelib.http.messages import Query, Request, Response
from chalicelib.http.routing import ANY_OPTIONS, public_read
from chalicelib.pages import badge_routes as routes

Translation: TypeAlias = Callable[[str], str | None]
"""A function that returns our value of an option for theirs, or None without one."""
Options: TypeAlias = Mapping[str, tuple[str, Translation]]
"""Our name of each of their options, and the translation of its values."""

SCHEME = re.compile("[A-Za-z][A-Za-z0-9+.-]*://")
GREEN = "brightgreen"


@dataclass(frozen=True, slots=True)
class Service:
    """A counter whose URLs have responses here.

    `path` matches the paths of its badges. The page is the group `page` of the path, or the value
    of `parameter` in the query, and `to_id` returns its id here. A path with the group `peek`
    counts nothing. `defaults` are the options that make a badge look as it did there.
    """

    path: re.Pattern[str]
    to_id: Callable[[str], str]
    options: Options
    parameter: str = ""
    defaults: Mapping[str, str] = field(default_factory=dict)

    def translate(self, matched: re.Match[str], query: Query) -> Query:
        """Return our query for one of theirs. Raises `BadIdError` if it names no page."""
        given = {name: values[0] for name, values in query.items() if values}
        groups, ours = matched.groupdict(), {**self.defaults}
        page = groups.get("page") or given.get(self.parameter, "").strip()
        if not page:
            raise BadIdError(f"give the page: ?{self.parameter}=…")
        for theirs, (name, to_value) in self.options.items():
            value = to_value(given[theirs]) if theirs in given else None
            if value is not None and _is_valid(name, value):
                ours[name] = value
        ours |= {"id": self.to_id(page)} | ({"peek": "1"} if groups.get("peek") else {})
        return {name: [value] for name, value in ours.items()}


def translate(path: str, query: Query, counters: Container[str]) -> Query:
    """Return our query for a URL of one of these counters.

    Raises `NotFoundError` for any other path, and `BadIdError`.
    """
    for counter, service in SERVICES.items():
        if counter in counters and (matched := service.path.fullmatch(path)):
            return service.translate(matched, query)
    raise NotFoundError("there is no such route")


def _is_valid(name: str, value: str) -> bool:
    try:
        routes.ImageOptions.fields[name].read_option([value])
    except BadRequestError:
        return False
    return True


def _same(value: str) -> str:
    return value


def _style(value: str) -> str | None:
    """Return a style that JSON badges have, too."""
    return value if value in options.STYLES else None


def _if_true(meaning: str) -> Translation:
    return lambda given: meaning if given.lower() in {"1", "true"} else None


def _nonempty(value: str) -> str | None:
    return value.strip() or None


def of_page(url: str) -> str:
    """Return the id of a page: its URL without scheme, query and fragment, and slashes at the end.

    So the owner of a repository on GitHub or GitLab can prove the badge.
    """
    return without_scheme(url).partition("?")[0].rstrip("/")


def without_scheme(url: str) -> str:
    """Return a URL without its scheme, its fragment, and slashes at the end."""
    return SCHEME.sub("", url, count=1).partition("#")[0].rstrip("/")


SHIELDS: Options = {name: (name, _same) for name in options.Look.fields}
"""The options that have the names and values of shields.io."""

SERVICES: Mapping[str, Service] = {
    "komarev": Service(
        re.compile("/ghpvc/?"),
        # A profile on GitHub is a page of the repository `NAME/NAME`.
        lambda name: f"{name}/{name}",
        {**SHIELDS, "base": ("base", _same), "abbreviated": ("format", _if_true("short"))},
        parameter="username",
        defaults={"label": "Profile views", "format": "comma"},
    ),
    "hits.sh": Service(
        re.compile(r"/(?P<page>[^/@][^/]*\.[^/]*(/.+)?)\.svg"),
        without_scheme,
        {**SHIELDS, "extraCount": ("base", _same), "view": ("show", _same)},
        defaults={"label": "hits", "color": GREEN, "format": "comma"},
    ),
    "visitor-badge": Service(
        re.compile("/badge"),
        _same,
        {
            **SHIELDS,
            "left_text": ("label", _same),
            "left_color": ("labelColor", _same),
            "right_color": ("color", _same),
            "format": ("format", _if_true("short")),
            "query_only": ("peek", _if_true("1")),
        },
        parameter="page_id",
        defaults={"label": "visitors", "labelColor": "595959", "color": "1283c3"},
    ),
    "moe-counter": Service(
        re.compile("/(get/)?@(?P<page>[^/]+)"),
        lambda name: f"@{name.removeprefix('@')}",
        {},
        defaults={"label": ""},
    ),
    "hit-counter": Service(
        re.compile(r"/(?P<peek>no)?count/tag\.svg"),
        of_page,
        {},
        parameter="url",
        defaults={"label": "hits", "color": GREEN},
    ),
    "seeyoufarm": Service(
        re.compile(r"/api/count/(incr|(?P<peek>keep|show))/badge\.svg"),
        of_page,
        {
            "title": ("label", _nonempty),
            "title_bg": ("labelColor", _nonempty),
            "count_bg": ("color", _nonempty),
            "icon": ("logo", lambda file: file.removesuffix(".svg")),
            "icon_color": ("logoColor", _nonempty),
            "edge_flat": ("style", _if_true("flat-square")),
        },
        parameter="url",
        defaults={"label": "hits", "color": "79c83d", "show": "today-total"},
    ),
    "hitscounter": Service(
        re.compile("/api/hit"),
        without_scheme,
        {**SHIELDS, "icon": ("logo", _same), "tz": ("tz", _same)},
        parameter="url",
        defaults={"label": "", "color": GREEN, "show": "today-total"},
    ),
    "dwyl": Service(
        re.compile(r"/(?P<page>[^/.@]+/[^/]+)\.(svg|json)"),
        _same,
        {"style": ("style", _style), "color": ("color", _same)},
        defaults={"label": "hits", "color": GREEN},
    ),
}
"""The services; the paths of dwyl have room for those of others, so they are the last ones."""


def get_drop_in(request: Request, resources: routes.ViewResources) -> Response:
    """Count a view of the badge that a URL of another counter names, and return the badge."""
    query = translate(request.path, request.query, resources.settings.drop_in)
    return routes.get_views(_ours(request)._replace(query=query), resources)


def _fail(failure: Exception, request: Request) -> Response:
    """Draw a failure, but return the usual error for a path that is no counter's."""
    if isinstance(failure, NotFoundError):
        return errors.to_response(failure)
    return respond(routes.draw_failure(failure), _ours(request))


def _ours(request: Request) -> Request:
    form = "" if request.path.endswith(".json") else IMAGE
    return request._replace(path=f"{routes.PATH}{form}")


ROUTE = public_read("/{path+}", get_drop_in, on_failure=_fail, options=ANY_OPTIONS)
