"""The webhooks of features other than events: the check of their URLs, and the port to events.

A feature writes the event of a webhook in its own transaction. So the webhook is sent if and only
if the transaction is done, with the retries and the signature of every event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from chalicelib.http.errors import BadRequestError
from chalicelib.outgoing import urls
from chalicelib.outgoing.urls import Allowed
from chalicelib.settings import Settings
from chalicelib.storage.writes import Put
from chalicelib.units import Seconds

NO_SECRET = "WEBHOOK_SECRETS is not set, so nothing can be signed"  # noqa: S105  a message, not a secret


class Webhook(NamedTuple):
    """A webhook to send: its id, its URL, and its body as JSON."""

    webhook_id: str
    url: str
    payload: str


class WebhookSchedule(Protocol):
    """The port through which a feature creates the events of its webhooks."""

    def put(self, webhook: Webhook) -> Put:
        """Return the write that creates the event of a webhook, due now."""

    def enqueue(self, written: Sequence[Put]) -> None:
        """Enqueue events after they were written; the sweep finds those that are missing."""


def check_webhook(
    url: str, settings: Settings, resolver: urls.Resolver, seconds: Seconds = urls.DNS_SECONDS
) -> None:
    """Raise `BadRequestError` unless a webhook may go to a URL now, which takes `seconds`."""
    if not settings.can_sign:
        raise BadRequestError(f"url: no event can go to one here, because {NO_SECRET}")
    allowed = Allowed.parse(settings.webhook_allow)
    urls.permitted(urls.check_url(url, allowed), allowed, resolver, seconds)
