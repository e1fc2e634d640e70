"""`chalice deploy` to AWS, run on an emulator, the functions that it creates, and `chalice local`.

The emulator can't show the REST API: `test_chalice_routes.py` sends events in AWS's form to its
function. `test_deployed.py` says what else it can't show.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from chalicelib.counting import keys
from chalicelib.counting.view import View
from chalicelib.ulids import new_ulid
from deploy.stage import mapping_options
from simulation.environment import free_port
from tests.processes.emulator import (
    BIN,
    CONSUMERS,
    Emulator,
    old_ulid,
    running,
    started,
)
from tests.processes.programs import until

STACK = "vu-mi-chalice-dev"
"""The stack, whose name Chalice gives its functions too."""


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """Return an emulator to which the stage `dev` is deployed."""
    with running(tmp_path_factory.mktemp("emulator")) as emulator:
        emulator.make("chalice-deploy", STAGE="dev")
        yield emulator


def test_chalice_deploy_makes_one_stage(aws: Emulator) -> None:
    """SAM, which `chalice deploy` does not use, would add one."""
    gateway = aws.client("apigateway")
    [api] = gateway.get_rest_apis()["items"]
    [stage] = gateway.get_stages(restApiId=api["id"])["item"]
    assert stage["stageName"] == "dev"


def test_a_badge_of_chalice_local_counts_by_the_functions_of_its_stage(aws: Emulator) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    options = ("--stage", "dev", "--no-autoreload", "--port", url.rpartition(":")[2])
    command = (BIN / "chalice", "local", *options)
    with started(command, aws.folder, url, AWS_ENDPOINT_URL=aws.endpoint):
        badge = f"{url}/api/v1/views?id=local"
        assert aws.ask(badge, "GET")[1]["message"] == "0"
        until(lambda: aws.ask(f"{badge}&peek=1", "GET")[1]["message"] == "1", "the view is put")
        assert aws.ask(f"{url}/api/v1/events", "GET") == (401, {"message": "Unauthorized"})


def test_a_message_reaches_the_functions_of_chalice_deploy(aws: Emulator) -> None:
    stack = aws.outputs(STACK)
    table = stack["TableName"]
    young = View("octocat", new_ulid(int(time.time() * 1000)))
    for view in (young, View("octocat", old_ulid())):
        aws.client("sqs").send_message(
            QueueUrl=stack["ViewsQueueUrl"], MessageBody=view.to_message()
        )
    [stored] = until(lambda: aws.views(table), "the young view is put")
    assert stored == keys.VIEW + young.ulid
    until(lambda: aws.count(table) == 1, "the old view is counted at once")
    marker = aws.put_old_views(table, 2)
    aws.fold(f"{STACK}-fold_views", stack["TableStreamArn"], marker)
    assert aws.count(table) == 3


@pytest.mark.parametrize("function", CONSUMERS)
def test_the_mappings_of_chalice_deploy_equal_those_of_the_stack(
    aws: Emulator, function: str
) -> None:
    options = mapping_options(function)
    assert options["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    deployed = aws.mapping(f"{STACK}-{function}")
    assert {option: deployed.get(option) for option in options} == options
