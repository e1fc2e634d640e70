"""The rules for all tests: no access to real AWS, and a fixed seed for generated tests."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

os.environ.update(
    AWS_ACCESS_KEY_ID="testing",
    AWS_SECRET_ACCESS_KEY="testing",  # noqa: S106  a name that no AWS account has
    AWS_DEFAULT_REGION="us-east-1",
)

settings.register_profile(
    "vu-mi",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("vu-mi")
