"""The included logos: the wanted ones whose licence allows it."""

from __future__ import annotations

from chalicelib.badges import logos as included
from tests.logos import LICENCES, OF_PACKAGE, WANTED


def test_the_included_logos_are_the_wanted_ones() -> None:
    """`make logos` needs npm, so this compares names and licences alone."""
    refused = {name for name in WANTED.split() if included.find_refused_licence(name)}
    assert set(included.names()) == {*WANTED.split()} - refused
    assert not {included.licences()[name] for name in refused} & LICENCES
    assert OF_PACKAGE not in included.licences().values()
