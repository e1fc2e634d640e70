"""The rules for all tests: no access to real AWS, and a fixed seed for generated tests."""

from __future__ import annotations

import os

from tests import profile

os.environ.update(
    AWS_ACCESS_KEY_ID="testing",
    AWS_SECRET_ACCESS_KEY="testing",  # noqa: S106  a name that no AWS account has
    AWS_DEFAULT_REGION="us-east-1",
)

profile.register()
