"""The output of the program: JSON lines, and metrics that CloudWatch can read."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from chalicelib import telemetry


@pytest.fixture(autouse=True)
def _begin_request() -> None:
    telemetry.begin("fold_views", None)


@pytest.fixture
def out() -> io.StringIO:
    stream = io.StringIO()
    telemetry.write_to(stream, with_metrics=True)
    return stream


def lines(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().split("\n") if line]


def test_an_event_is_one_line_of_json_with_its_fields(out: io.StringIO) -> None:
    telemetry.event(logging.WARNING, "badge_not_folded", badge="a\nb\u2028é", views=3)
    assert out.getvalue().count("\n") == 1
    [line] = lines(out)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "level": "WARNING",
        "message": "badge_not_folded",
        "function": "fold_views",
        "badge": "a\nb\u2028é",
        "views": 3,
    }


def test_a_field_that_json_does_not_support_is_written_as_text(out: io.StringIO) -> None:
    telemetry.event(logging.WARNING, "failed", reason=ValueError("why"))
    assert lines(out)[0]["reason"] == "why"


def test_an_error_carries_the_exception_being_handled(out: io.StringIO) -> None:
    try:
        int("no number")
    except ValueError:
        telemetry.event(logging.ERROR, "badge_failed")
    [line] = lines(out)
    assert line["level"] == "ERROR"
    assert "ValueError: invalid literal" in line["error"]
    assert "Traceback" in line["error"]


def test_an_error_without_an_exception_and_a_warning_with_one_carry_none(out: io.StringIO) -> None:
    telemetry.event(logging.ERROR, "dead_letters", messages=2)
    try:
        int("no number")
    except ValueError:
        telemetry.event(logging.WARNING, "tried again")
    assert ["error" in line for line in lines(out)] == [False, False]


def test_times_are_utc_with_milliseconds() -> None:
    record = logging.LogRecord("vu-mi", logging.INFO, "", 0, "an event", None, None)
    record.created = 1_773_489_600.0625
    line = json.loads(telemetry.JsonFormatter().format(record))
    assert line["timestamp"] == "2026-03-14T12:00:00.062Z"


def test_metrics_are_written_in_cloudwatchs_embedded_format(out: io.StringIO) -> None:
    """Source: the CloudWatch user guide, "Specification: Embedded metric format"."""
    telemetry.count(views_folded=7, duplicates_dropped=0, fold_lag_seconds=1)
    assert out.getvalue().count("\n") == 1
    [document] = lines(out)
    assert document["_aws"].keys() == {"Timestamp", "CloudWatchMetrics"}
    assert type(document["_aws"]["Timestamp"]) is int  # milliseconds since 1970
    [directive] = document["_aws"]["CloudWatchMetrics"]
    assert directive == {
        "Namespace": "vu-mi",
        "Dimensions": [["function"]],
        "Metrics": [
            {"Name": "views_folded", "Unit": "Count"},
            {"Name": "duplicates_dropped", "Unit": "Count"},
            {"Name": "fold_lag_seconds", "Unit": "Seconds"},
        ],
    }
    values = {name: value for name, value in document.items() if name != "_aws"}
    assert values == {
        "function": "fold_views",
        "views_folded": 7,
        "duplicates_dropped": 0,
        "fold_lag_seconds": 1,
    }


class Context:
    """The context that Lambda passes to a handler."""

    function_name = "vu-mi-prod-put_views"
    aws_request_id = "8f5d"


def test_lines_carry_lambdas_name_of_the_function_and_its_request_id(out: io.StringIO) -> None:
    """Metrics carry it too, so two stages in one account never add to one metric."""
    telemetry.begin("put_views", Context())
    telemetry.event(logging.WARNING, "a view is not stored yet")
    telemetry.count(views_put=1)
    named = {"function": "vu-mi-prod-put_views", "request_id": "8f5d"}
    for line in lines(out):
        assert named.items() <= line.items()
    telemetry.begin("put_views", None)
    telemetry.event(logging.WARNING, "another request")
    line = lines(out)[-1]
    assert (line["function"], "request_id" in line) == ("put_views", False)


def test_only_warnings_of_other_libraries_are_written(out: io.StringIO) -> None:
    library = logging.getLogger("some.package")
    library.info("chatter")
    library.warning("look out: %s", "here")
    [line] = lines(out)
    assert line["message"] == "look out: here"


def test_existing_log_handlers_are_replaced_so_that_no_line_is_written_twice() -> None:
    """Lambda's runtime installs its own handler on the root logger."""
    before, out = io.StringIO(), io.StringIO()
    logging.getLogger().addHandler(logging.StreamHandler(before))
    telemetry.write_to(io.StringIO(), with_metrics=True)
    telemetry.write_to(out, with_metrics=True)
    telemetry.event(logging.WARNING, "once")
    assert len(lines(out)) == 1
    assert before.getvalue() == ""


def test_metrics_also_go_to_the_functions_that_want_them() -> None:
    totals: list[Mapping[str, int]] = []
    telemetry.on_count.append(totals.append)
    try:
        telemetry.count(views_put=2, malformed=0)
        telemetry.count(views_put=0)
    finally:
        telemetry.on_count.remove(totals.append)
    assert totals == [{"views_put": 2, "malformed": 0}]


def test_metrics_of_a_block_count_when_it_ends_without_an_error(out: io.StringIO) -> None:
    with telemetry.writing_on_success():
        telemetry.count(views_put=2)
        assert lines(out) == []
    assert [line["views_put"] for line in lines(out)] == [2]
    with suppress(ValueError), telemetry.writing_on_success():
        telemetry.count(views_put=3)
        telemetry.changed("owner", "delete_badge", "octocat")
        raise ValueError
    assert len(lines(out)) == 1
