"""HTTP messages as bytes, for clients that send what no library would."""

from __future__ import annotations

END_OF_HEAD = b"\r\n\r\n"


def complete(received: bytes) -> bool:
    """Return whether a message has its whole head and body, by its `Content-Length`."""
    head, end, body = received.partition(END_OF_HEAD)
    if not end:
        return False
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]
    return len(body) >= int(length or 0)
