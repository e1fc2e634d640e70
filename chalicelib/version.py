"""The version of vu-mi, which the wheel, the OpenAPI description and the metrics have."""

VERSION = "1.0.0"
