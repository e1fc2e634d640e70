"""The HTTP API of the one stack, as it is made of the table of routes and of Chalice's template."""

from __future__ import annotations

from chalicelib.api import TABLE
from deploy import http_api


def test_exactly_the_routes_of_a_feature_have_its_condition() -> None:
    """No route depends on one that has another condition, because that one may be missing."""
    made = http_api.routes(TABLE.routes)
    features = {route.path: route.feature for route in TABLE.routes}
    for part in made.values():
        feature = features[part["Properties"]["RouteKey"].split(" ")[1]]
        condition = feature and f"Has{feature.value.capitalize()}"
        assert part.get("Condition") == condition
        before = made.get(part["DependsOn"], {})
        assert before.get("Condition") in {None, condition}
