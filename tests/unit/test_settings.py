"""The settings: their defaults, their bounds, and messages that say what is right."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.settings import Settings, SettingsError, required, whole_number


def test_without_any_setting_the_windows_are_five_minutes() -> None:
    assert Settings.from_environment({}) == Settings(
        table_name="", views_queue_url="", view_window_seconds=300, redelivery_seconds=300
    )


def test_every_setting_is_read_and_whatever_else_is_set_is_not() -> None:
    environment = {
        "TABLE_NAME": "views",
        "VIEWS_QUEUE_URL": "https://queue",
        "VIEW_WINDOW_SECONDS": "60",
        "REDELIVERY_SECONDS": "7200",
        "HOME": "/root",
    }
    assert Settings.from_environment(environment) == Settings("views", "https://queue", 60, 7_200)


@pytest.mark.parametrize("name", ["VIEW_WINDOW_SECONDS", "REDELIVERY_SECONDS"])
@pytest.mark.parametrize(
    "given_value",
    ["0", "-1", "+5", "1.5", "5 ", "5s", "five", "86401", "\u0665", "\u00b2", "1_000"],
)
def test_a_window_that_is_no_number_of_seconds_in_a_day_is_refused_by_name(
    name: str, given_value: str
) -> None:
    with pytest.raises(SettingsError) as refusal:
        Settings.from_environment({name: given_value})
    message = f"{name} must be a whole number from 1 to 86400, not {given_value!r}"
    assert str(refusal.value) == message


@pytest.mark.parametrize(("given_value", "seconds"), [("1", 1), ("86400", 86_400), ("0060", 60)])
def test_the_bounds_themselves_are_taken(given_value: str, seconds: int) -> None:
    settings = Settings.from_environment({"VIEW_WINDOW_SECONDS": given_value})
    assert settings.view_window_seconds == seconds


@given(st.text(max_size=20), st.integers(0, 50), st.integers(50, 100))
def test_a_whole_number_is_within_its_bounds_or_an_error(
    given_value: str, least: int, most: int
) -> None:
    try:
        number = whole_number({"X": given_value}, "X", 50, least, most)
    except SettingsError:
        return
    assert least <= number <= most
    assert number == int(given_value or "50")


def test_an_empty_setting_is_none() -> None:
    assert Settings.from_environment({"VIEW_WINDOW_SECONDS": ""}).view_window_seconds == 300


def test_a_number_too_long_to_be_read_is_refused_like_any_other() -> None:
    with pytest.raises(SettingsError):
        Settings.from_environment({"VIEW_WINDOW_SECONDS": "9" * 5_000})


def test_a_setting_that_must_be_there_is_answered_or_asked_for_by_name() -> None:
    assert required("TABLE_NAME", "views", "the name of the table") == "views"
    with pytest.raises(SettingsError, match="TABLE_NAME is not set; it must be the name of"):
        required("TABLE_NAME", "", "the name of the table")
