"""The settings of one machine: its address, its data folder, and the limits of clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from chalicelib.limits import Action
from chalicelib.settings import Settings, choice, is_on, whole_number
from vumi.metrics.access import MetricsAccess
from vumi.server.client_limits import Rate
from vumi.server.proxies import TrustedProxies

RETENTION_SECONDS = 3_600
"""The default retention of a view: no message is delivered again after it was handled."""
MAX_PER_PERIOD = 1_000_000
LIMITS = {
    Action.NEW_ID: ("CLIENT_NEW_IDS_PER_MINUTE", 300, 60),
    Action.CLAIM: ("CLIENT_CLAIMS_PER_MINUTE", 30, 60),
    Action.PROOF: ("CLIENT_PROOFS_PER_MINUTE", 10, 60),
    Action.REQUEST: ("CLIENT_REQUESTS_PER_SECOND", 0, 1),
}
"""The setting of each limit, its default, and its seconds.

By default requests are not limited: GitHub's image proxy asks for everybody's badges from a few
addresses.
"""


@dataclass(frozen=True, slots=True)
class StandaloneSettings:
    """The settings of one machine; `product` has those of every engine.

    `client_rates` has no rate for an action that is not limited. `metrics` are the requests that
    may read the metrics. `access_log`: each request is logged, without anything about its client.
    `admin`: the operator's page is served.
    """

    host: str
    port: int
    folder: Path
    product: Settings
    client_rates: Mapping[Action, Rate]
    proxies: TrustedProxies
    metrics: MetricsAccess = MetricsAccess.LOCAL
    access_log: bool = False
    admin: bool = True

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> StandaloneSettings:
        """Read HOST, PORT, DATA and the settings of every engine. Raises `SettingsError`."""
        return cls(
            host=environment.get("HOST") or "127.0.0.1",
            port=whole_number(environment, "PORT", 8000, 0, 65_535),
            folder=Path(environment.get("DATA") or "data"),
            product=Settings.from_environment(environment, retention_seconds=RETENTION_SECONDS),
            client_rates=_parse_rates(environment),
            proxies=TrustedProxies.parse(environment.get("TRUSTED_PROXIES", "")),
            metrics=MetricsAccess(choice(environment, "METRICS", tuple(MetricsAccess))),
            access_log=choice(environment, "ACCESS_LOG", ("off", "on")) == "on",
            admin=is_on(environment, "ADMIN"),
        )


def _parse_rates(environment: Mapping[str, str]) -> dict[Action, Rate]:
    given = {
        action: Rate(whole_number(environment, name, default, 0, MAX_PER_PERIOD), seconds)
        for action, (name, default, seconds) in LIMITS.items()
    }
    return {action: rate for action, rate in given.items() if rate.actions}
