"""A stack on AWS as an installation: its outputs, what it does not have, and its dead letters."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import boto3
import pytest
from moto import mock_aws

from chalicelib.counting.view import View
from chalicelib.settings import Settings
from chalicelib.storage.errors import StorageError
from chalicelib.storage.ports import NotSentError
from simulation.clocks import NOON, ulid_of
from simulation.faults import Crash
from simulation.storage import FakeQueue
from vumi.cli.program import main
from vumi.operate.admin.installation import LetterOutcome
from vumi.operate.installations.stack import DELIVERY_SECONDS, INVISIBLE_SECONDS, Redrive

BADGES_ALONE = {
    "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
    "Outputs": {"TableName": {"Value": "vu-mi"}},
}


def test_a_command_for_events_says_that_the_stack_has_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with mock_aws():
        boto3.client("cloudformation").create_stack(
            StackName="vu-mi-prod", TemplateBody=json.dumps(BADGES_ALONE)
        )
        assert main(["redrive-events", "--stack", "vu-mi-prod"]) == 1
    told = "Error: the stack vu-mi-prod has no events; deploy it with Events=on first\n"
    assert capsys.readouterr().err == told


def test_an_unknown_stack_is_reported_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with mock_aws():
        assert main(["token", "list", "--stack", "vu-mi-prod"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("Error: ")
    assert "vu-mi-prod" in told
    assert told.count("\n") == 1


def test_a_missing_region_is_reported_with_its_variable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    assert main(["list", "--stack", "vu-mi-prod"]) == 1
    told = "Error: no region is configured; set AWS_DEFAULT_REGION\n"
    assert capsys.readouterr().err == told


URL = "https://sqs.us-east-1.amazonaws.com/123456789012/vu-mi-dead"
RETENTION = Settings().retention_seconds
_numbers = count()


@dataclass
class Letter:
    """A message of the dead-letter queue, and the time from which it can be received."""

    body: object
    visible_at: float = 0.0


@dataclass
class DeadLetters:
    """An SQS client with one queue; its clock is at noon and moves by `step` for each request.

    A received message is invisible for the time that was asked for. `crashes` ends the process
    before the first deletion.
    """

    step: float = 0.0
    crashes: bool = False
    now: float = NOON
    letters: dict[str, Letter] = field(default_factory=dict)

    def put(self, *bodies: object) -> None:
        for body in bodies:
            self.letters[f"m-{next(_numbers)}"] = Letter(body)

    @property
    def bodies(self) -> list[object]:
        return [letter.body for letter in self.letters.values()]

    def receive_message(
        self,
        QueueUrl: str,  # noqa: N803  boto3's names
        MaxNumberOfMessages: int,  # noqa: N803
        VisibilityTimeout: int,  # noqa: N803
        WaitTimeSeconds: int,  # noqa: N803
    ) -> dict[str, Any]:
        assert QueueUrl == URL
        assert 1 <= MaxNumberOfMessages <= 10, "InvalidParameterValue"
        assert 0 < WaitTimeSeconds <= 20, "a short poll may miss messages that are there"
        self.now += self.step
        there = [name for name, letter in self.letters.items() if letter.visible_at <= self.now]
        given = there[:MaxNumberOfMessages]
        for name in given:
            self.letters[name].visible_at = self.now + VisibilityTimeout
        return {"Messages": [self._message(name) for name in given]} if given else {}

    def _message(self, name: str) -> dict[str, object]:
        body = self.letters[name].body
        message: dict[str, object] = {"MessageId": name, "ReceiptHandle": f"handle-{name}"}
        return message if body is None else {**message, "Body": body}

    def delete_message(self, QueueUrl: str, ReceiptHandle: str) -> None:  # noqa: N803
        assert QueueUrl == URL
        if self.crashes:
            raise Crash
        del self.letters[ReceiptHandle.removeprefix("handle-")]


def message(age: float = 0, badge_id: str = "octocat") -> str:
    """Return the message of a view that was taken this many seconds before noon."""
    return View(badge_id, ulid_of(NOON - age, f"{next(_numbers):016}")).to_message()


def redrive(letters: DeadLetters, queue: FakeQueue) -> dict[LetterOutcome, int]:
    client: Any = letters
    return dict(Redrive(client, URL, queue, lambda: NOON, RETENTION).run())


@pytest.mark.parametrize("letters", [0, 1, 10, 35])
def test_every_dead_letter_is_sent_as_it_is_and_deleted(letters: int) -> None:
    dead, queue = DeadLetters(), FakeQueue()
    bodies = [message(age) for age in range(letters)]
    dead.put(*bodies)
    assert redrive(dead, queue) == ({LetterOutcome.SENT: letters} if letters else {})
    assert queue.bodies == bodies
    assert dead.letters == {}


@pytest.mark.parametrize("body", ["{", "", None, '{"id": "octocat"}'])
def test_a_malformed_letter_stays_and_delays_no_other(body: object) -> None:
    dead, queue = DeadLetters(), FakeQueue()
    dead.put(body, *(good := [message() for _ in range(15)]))
    assert redrive(dead, queue) == {LetterOutcome.SENT: 15, LetterOutcome.MALFORMED: 1}
    assert (queue.bodies, dead.bodies) == (good, [body])


def test_a_letter_stays_whose_view_may_leave_the_table_before_it_is_delivered() -> None:
    """SQS keeps a message for 14 days, so only a letter that was redriven before is too old."""
    dead, queue = DeadLetters(), FakeQueue()
    oldest = RETENTION - DELIVERY_SECONDS
    assert oldest == 14 * 86_400
    dead.put(young := message(oldest), old := message(oldest + 0.001))
    assert redrive(dead, queue) == {LetterOutcome.SENT: 1, LetterOutcome.TOO_OLD: 1}
    assert (queue.bodies, dead.bodies) == ([young], [old])


@pytest.mark.parametrize("step", [INVISIBLE_SECONDS / 4, INVISIBLE_SECONDS / 2])
def test_a_letter_that_is_received_again_by_a_long_run_is_counted_once(step: float) -> None:
    dead, queue = DeadLetters(step=step), FakeQueue()
    dead.put("{", *(message() for _ in range(95)))
    assert redrive(dead, queue) == {LetterOutcome.SENT: 95, LetterOutcome.MALFORMED: 1}
    assert len(queue.bodies) == 95


@pytest.mark.parametrize("failure", [StorageError("refused"), NotSentError([], "throttled")])
def test_a_letter_that_is_not_sent_is_not_deleted(failure: StorageError) -> None:
    dead = DeadLetters()
    dead.put(message())
    with pytest.raises(StorageError):
        redrive(dead, FakeQueue(failure))
    assert len(dead.letters) == 1


def test_run_again_after_a_crash_it_sends_the_rest() -> None:
    """The first ten are sent twice, and none is lost."""
    dead, queue = DeadLetters(crashes=True), FakeQueue()
    bodies = [message() for _ in range(25)]
    dead.put(*bodies)
    with pytest.raises(Crash):
        redrive(dead, queue)
    dead.crashes, dead.now = False, NOON + INVISIBLE_SECONDS
    assert redrive(dead, queue) == {LetterOutcome.SENT: 25}
    assert set(queue.bodies) == set(bodies)
    assert dead.letters == {}
