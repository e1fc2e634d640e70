"""The version of vu-mi, which the wheel, the OpenAPI document and the metrics have from here."""

VERSION = "0.1.0"
