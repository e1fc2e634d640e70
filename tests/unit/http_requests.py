"""Asking the routes that need a token, over the gateway of one machine."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from vumi.server.gateway import Gateway


@dataclass(frozen=True)
class Answer:
    """What the caller gets; `MORE` is what an error may tell beside its code and message."""

    status: int
    headers: dict[str, str]
    text: str

    MORE: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def of(cls, gateway: Gateway, request: dict[str, Any]) -> Self:
        """What a request is answered."""
        begun: list[tuple[str, list[tuple[str, str]]]] = []
        sent = b"".join(gateway(request, lambda *head: begun.append(head)))
        [(status, headers)] = begun
        return cls(int(status[:3]), dict(headers), sent.decode())

    @property
    def body(self) -> Any:
        return json.loads(self.text)

    @property
    def refusal(self) -> tuple[int, str]:
        """The status and the code of an error in the product's form, whose message is not empty."""
        error = self.body["error"]
        assert set(self.body) == {"error"}
        assert {"code", "message"} <= set(error) <= {"code", "message"} | self.MORE
        assert error["message"]
        assert self.headers["Content-Type"] == "application/json"
        return self.status, str(error["code"])

    @property
    def says(self) -> str:
        return str(self.body["error"]["message"])


def environ(
    method: str, target: str, body: object, kind: str, authorization: str
) -> dict[str, Any]:
    """A request as a WSGI server hands it on; a body that is not bytes is sent as JSON."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return {
        "REQUEST_METHOD": method,
        "REQUEST_URI": target,
        "CONTENT_LENGTH": str(len(raw)),
        "CONTENT_TYPE": kind,
        "wsgi.input": io.BytesIO(raw),
        **({"HTTP_AUTHORIZATION": authorization} if authorization else {}),
    }
