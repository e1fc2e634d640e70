"""The options that are set on the functions and mappings of a stage of `chalice deploy`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError, ParamValidationError
from botocore.validate import ParamValidator

from deploy import template
from deploy.completion import (
    FUNCTIONS,
    MAX_ATTEMPTS,
    POLL_SECONDS,
    Completion,
    IncompleteError,
    mapping_options,
)
from deploy.stage import Folder

GROUP = "/aws/lambda/vu-mi-chalice-dev-"
CONSUMERS = ("put_views", "fold_views", "distribute_events", "deliver_events", "archive_entries")
MODEL: Any = botocore.session.get_session().get_service_model("lambda")


@dataclass
class FakeLambda:
    """A Lambda client that refuses to change what is busy for a number of tries.

    Raises what botocore raises for a request that Lambda has no such form of.
    """

    busy: dict[str, int] = field(default_factory=dict)
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)

    def update_function_configuration(self, **request: Any) -> None:
        self._update("UpdateFunctionConfiguration", "FunctionName", request)

    def put_function_recursion_config(self, **request: Any) -> None:
        self._update("PutFunctionRecursionConfig", "FunctionName", request)

    def update_event_source_mapping(self, **request: Any) -> None:
        self._update("UpdateEventSourceMapping", "UUID", request)

    def _update(self, operation: str, key: str, request: dict[str, Any]) -> None:
        name = request[key]
        if self.busy.get(name):
            self.busy[name] -= 1
            raise ClientError({"Error": {"Code": "ResourceConflictException"}}, operation)
        report = ParamValidator().validate(request, MODEL.operation_model(operation).input_shape)
        if report.has_errors():
            raise ParamValidationError(report=report.generate_report())
        self.settings.setdefault(name, {}).update(request)
        self.busy[name] = 2


def uuid_of(function: str) -> str:
    """Return a UUID of 36 letters, as Lambda requires."""
    return f"{function:x>36}"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Return a folder with Chalice 1.34's record of a stage, with the names that are read."""
    parts = [
        part
        for name in FUNCTIONS
        for part in (
            {"name": f"{name}-log-group", "log_group_name": GROUP + name},
            {"name": name, "lambda_arn": name},
        )
    ]
    parts += [
        {"name": f"{name}-sqs-event-source", "event_uuid": uuid_of(name)} for name in CONSUMERS
    ]
    folder = Folder(tmp_path)
    folder.deployed("dev").parent.mkdir(parents=True)
    folder.deployed("dev").write_text(json.dumps({"resources": parts}))
    return folder


def complete(client: FakeLambda, folder: Folder, pauses: list[float] | None = None) -> None:
    given: Any = client
    pause = [] if pauses is None else pauses
    Completion(given, folder, pause.append).run("dev")


def test_functions_and_mappings_get_the_options_that_chalice_does_not_support(
    folder: Folder,
) -> None:
    """To complete a stage again changes nothing."""
    client = FakeLambda()
    complete(client, folder)
    for function in FUNCTIONS:
        settings = client.settings[function]
        assert settings["LoggingConfig"]["LogFormat"] == "JSON"
        assert settings["LoggingConfig"]["LogGroup"] == GROUP + function
        assert settings.get("RecursiveLoop") == ("Allow" if function == "deliver_events" else None)
    for function in CONSUMERS:
        options = mapping_options(function)
        assert client.settings[uuid_of(function)] == {"UUID": uuid_of(function), **options}
        assert options["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        [source] = template.load()["Resources"][FUNCTIONS[function]]["Properties"][
            "Events"
        ].values()
        left_out = {"Queue", "Stream", "StartingPosition", "MetricsConfig"}
        assert source["Properties"].keys() - left_out == options.keys()
    before = json.dumps(client.settings)
    complete(client, folder)
    assert json.dumps(client.settings) == before


def test_a_change_that_lambda_refuses_meanwhile_is_tried_again(folder: Folder) -> None:
    """A function refuses three times, then a mapping five times, and one after its own change."""
    client, pauses = FakeLambda(busy={"put_views": 3, uuid_of("fold_views"): 5}), list[float]()
    complete(client, folder, pauses)
    assert pauses == [POLL_SECONDS] * (3 + 2 + 5)
    assert set(client.settings) == {*FUNCTIONS, *map(uuid_of, CONSUMERS)}


@pytest.mark.parametrize("stuck", ["api_handler", uuid_of("put_views")])
def test_a_change_that_lambda_always_refuses_is_an_error(folder: Folder, stuck: str) -> None:
    client = FakeLambda(busy={stuck: 1_000_000})
    with pytest.raises(ClientError, match="ResourceConflictException"):
        complete(client, folder)
    assert 1_000_000 - client.busy[stuck] == MAX_ATTEMPTS
    assert stuck not in client.settings


def test_a_stage_that_is_not_deployed_is_refused_with_the_command_to_run(tmp_path: Path) -> None:
    with pytest.raises(IncompleteError, match="dev is not deployed; run: chalice deploy --stage"):
        complete(FakeLambda(), Folder(tmp_path))
