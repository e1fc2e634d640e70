"""The line of progress: when it is shown, and what it says."""

from __future__ import annotations

from io import StringIO

from vumi.cli.progress import CLEAR_LINE, Progress


class Terminal(StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


def after(seconds: int, stream: StringIO) -> Progress:
    """Return the progress of a command that has read two items and takes this time."""
    line, waits = Progress("reading", stream), iter([False] * seconds)
    assert list(line.count("ab")) == ["a", "b"]
    line.run(lambda _: next(waits, True))
    return line


def text(line: Progress) -> str:
    assert isinstance(line.stream, StringIO)
    return line.stream.getvalue()


def test_a_line_is_shown_from_the_second_second_on_and_is_removed() -> None:
    line = after(3, Terminal())
    drawn = [f"{CLEAR_LINE}reading ({seconds} s, 2 so far)" for seconds in (2, 3)]
    assert text(line) == "".join(drawn)
    line.hide()
    line.hide()
    assert text(line) == "".join([*drawn, CLEAR_LINE])


def test_a_short_command_shows_no_line() -> None:
    line = after(1, Terminal())
    line.hide()
    assert text(line) == ""


def test_a_pipe_gets_no_line() -> None:
    assert text(after(3, StringIO())) == ""
