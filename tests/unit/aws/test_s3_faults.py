"""The archive on S3, and its errors when S3 fails."""

from __future__ import annotations

import pytest

from chalicelib.aws.s3 import S3Archive
from chalicelib.storage.errors import StorageRefusedError, UnavailableError
from simulation.aws_clients import client_error, script
from simulation.clocks import FakeTime

SLOW_DOWN = client_error("SlowDown", 503)


def test_a_put_that_s3_throttles_is_retried() -> None:
    client = script(SLOW_DOWN, client_error("InternalError", 500), {})
    S3Archive(client, "bucket", FakeTime().retry()).put("a/b", b"whole")
    assert (
        client.calls == [("put_object", {"Bucket": "bucket", "Key": "a/b", "Body": b"whole"})] * 3
    )


def test_a_put_that_always_fails_is_unavailable() -> None:
    client = script(SLOW_DOWN, SLOW_DOWN)
    with pytest.raises(UnavailableError, match="SlowDown"):
        S3Archive(client, "bucket", FakeTime().retry(attempts=2)).put("a", b"")


@pytest.mark.parametrize(("code", "status"), [("NoSuchBucket", 404), ("AccessDenied", 403)])
def test_a_missing_or_closed_bucket_is_refused_immediately(code: str, status: int) -> None:
    client = script(client_error(code, status))
    with pytest.raises(StorageRefusedError, match=code):
        S3Archive(client, "bucket", FakeTime().retry()).put("a", b"")
    assert len(client.calls) == 1
