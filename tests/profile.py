"""The number of generated cases, by the profile that make gets: `make test PROFILE=full` runs all.

`few` is for tests that run again in another place: on another Python, or another engine.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

SHARES = {"full": 1, "quick": 4, "few": 16}
"""Each profile runs one case in this many."""
DEFAULT = "quick"
EXAMPLES = 100


def register() -> None:
    """Register the profiles, and load the quick one; `--hypothesis-profile` loads another."""
    for name, share in SHARES.items():
        settings.register_profile(
            name,
            max_examples=EXAMPLES // share,
            derandomize=True,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        )
    settings.load_profile(DEFAULT)


def cases(full: int) -> int:
    """Return the number of cases to run of those that the full profile runs."""
    return -(-full // SHARES.get(settings.get_current_profile_name(), SHARES[DEFAULT]))
