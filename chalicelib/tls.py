"""The TLS context of all outgoing connections: the system's authorities, and names are checked.

The import makes it, so it is made once, however many threads need it first. It takes more than
20 ms of processor time.
"""

from __future__ import annotations

import ssl

SYSTEM_TRUST = ssl.create_default_context()
SYSTEM_TRUST.minimum_version = ssl.TLSVersion.TLSv1_2


def describe(failure: ssl.SSLError) -> str:
    """Say why a server got nothing: its certificate, or the handshake."""
    if isinstance(failure, ssl.SSLCertVerificationError):
        return f"the certificate is not accepted: {failure.verify_message}"
    return f"TLS failed: {failure.reason or 'no reason given'}"
