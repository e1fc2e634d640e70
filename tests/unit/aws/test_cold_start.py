"""The garbage collector during a cold start: it is off, and on again afterwards."""

from __future__ import annotations

import gc

import pytest

from chalicelib.aws.cold_start import uncollected


def test_the_collector_is_off_during_the_block_and_on_afterwards() -> None:
    with uncollected():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_the_collector_is_on_after_an_error() -> None:
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
