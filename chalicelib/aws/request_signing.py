"""The signature of a request to AWS (Signature Version 4).

Source: the IAM user guide, "Create a signed AWS API request".
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from chalicelib.units import Seconds

ALGORITHM = "AWS4-HMAC-SHA256"
TERMINATION = "aws4_request"


@dataclass(frozen=True, slots=True)
class Signer:
    """The signer of requests to a service in a region, with an access key.

    `token` is the session token of a role, empty for the key of a user.
    """

    key_id: str
    secret: str = field(repr=False)
    token: str = field(repr=False)
    region: str
    service: str

    def sign(
        self, headers: Mapping[str, str], body: bytes, path: str, now: Seconds
    ) -> dict[str, str]:
        """Return the headers of a POST with its time, token and signature."""
        moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
        signed = {**headers, "X-Amz-Date": moment}
        if self.token:
            signed["X-Amz-Security-Token"] = self.token
        lines = sorted((name.lower(), value) for name, value in signed.items())
        names = ";".join(name for name, _ in lines)
        canonical = "\n".join(
            ("POST", path, "", *(f"{name}:{value}" for name, value in lines), "", names)
        )
        scope = (moment[:8], self.region, self.service, TERMINATION)
        signature = self._signature(f"{canonical}\n{_sha256(body)}", moment, scope)
        credential = f"Credential={self.key_id}/{'/'.join(scope)}"
        signed["Authorization"] = (
            f"{ALGORITHM} {credential}, SignedHeaders={names}, Signature={signature}"
        )
        return signed

    def _signature(self, canonical: str, moment: str, scope: tuple[str, ...]) -> str:
        text = "\n".join((ALGORITHM, moment, "/".join(scope), _sha256(canonical.encode())))
        key = f"AWS4{self.secret}".encode()
        for part in (*scope, text):
            key = hmac.digest(key, part.encode(), hashlib.sha256)
        return key.hex()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
