"""vu-mi, live badges for Markdown: the product and its storage on AWS. `vumi` is one machine."""

VERSION = "1.0.0"
"""The version of vu-mi, which the wheel, the OpenAPI description and the metrics have."""
