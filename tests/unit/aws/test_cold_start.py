"""Nothing is collected while a cold start goes on, and everything after it."""

from __future__ import annotations

import gc

import pytest

from chalicelib.aws.cold_start import uncollected


def test_the_collector_rests_within_and_works_again_behind() -> None:
    with uncollected():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_the_collector_works_again_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), uncollected():
        raise ZeroDivisionError
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with uncollected(), uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
