"""The number of generated cases: `make test` runs a part, `make test PROFILE=full` runs all."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

FULL = "full"
QUICK = "quick"
SHARE = 4
"""The quick profile runs one case in this many."""
SHARE_OF_LAWS = 8
"""The quick profile runs one history in this many, because CI runs those of the laws in full."""
EXAMPLES = 100


def register() -> None:
    """Register both profiles, and load the quick one; `--hypothesis-profile` loads the other."""
    for name, examples in ((FULL, EXAMPLES), (QUICK, EXAMPLES // SHARE)):
        settings.register_profile(
            name,
            max_examples=examples,
            derandomize=True,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        )
    settings.load_profile(QUICK)


def cases(full: int, share: int = SHARE) -> int:
    """Return the number of cases to run of those that the full profile runs."""
    return full if settings.get_current_profile_name() == FULL else -(-full // share)
