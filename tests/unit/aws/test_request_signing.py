"""Signatures equal those of AWS's test suite and of botocore."""

from __future__ import annotations

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.aws.request_signing import Signer

EXAMPLE_TIME = 1_440_938_160.0
"""2015-08-30T12:36:00Z."""
TEXT = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40)


def test_a_post_of_the_test_suite_of_aws_has_the_signature_in_it() -> None:
    """Source: aws-sig-v4-test-suite, post-vanilla."""
    secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"  # noqa: S105  AWS's example
    signer = Signer("AKIDEXAMPLE", secret, "", "us-east-1", "service")
    signed = signer.sign({"Host": "example.amazonaws.com"}, b"", "/", EXAMPLE_TIME)
    assert signed == {
        "Host": "example.amazonaws.com",
        "X-Amz-Date": "20150830T123600Z",
        "Authorization": (
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request,"
            " SignedHeaders=host;x-amz-date,"
            " Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"
        ),
    }


@given(
    secret=TEXT,
    token=st.just("") | TEXT,
    target=TEXT,
    body=st.binary(max_size=200),
    now=st.integers(1, 4_000_000_000),
)
def test_a_signature_equals_that_of_botocore(
    secret: str, token: str, target: str, body: bytes, now: int
) -> None:
    headers = {
        "Content-Type": "application/x-amz-json-1.0",
        "Host": "dynamodb.eu-west-1.amazonaws.com",
        "X-Amz-Target": target,
    }
    signed = Signer("AKID", secret, token, "eu-west-1", "dynamodb").sign(headers, body, "/", now)

    request = AWSRequest("POST", f"https://{headers['Host']}/", data=body)
    for name in signed.keys() - {"Authorization"}:
        request.headers[name] = signed[name]
    request.context["timestamp"] = signed["X-Amz-Date"]
    auth = SigV4Auth(Credentials("AKID", secret, token or None), "dynamodb", "eu-west-1")
    text = auth.string_to_sign(request, auth.canonical_request(request))
    assert signed["Authorization"].endswith(f", Signature={auth.signature(text, request)}")
    assert (
        f"SignedHeaders={auth.signed_headers(auth.headers_to_sign(request))},"
        in (signed["Authorization"])
    )
