"""Checkers of others for what we generate, imported on first use, because that takes seconds.

A module of tests calls these functions and does not name the checkers, because pytest asks each
name in it for attributes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from chalicelib.lazy import lazy

_cfnlint = lazy("cfnlint.api")
_openapi = lazy("openapi_spec_validator")
_sam_parser = lazy("samtranslator.parser.parser")
_sam_translator = lazy("samtranslator.translator.translator")
_schema = lazy("openapi_schema_validator")

# jsonschema checks IRIs by grammars that compile for seconds on import. Of what tests check, only
# bills of materials have IRIs, and `make release` checks those.
sys.modules.setdefault("rfc3987_syntax", cast("ModuleType", None))


def translate(template: dict[str, Any]) -> dict[str, Any]:
    """Return a template of SAM as CloudFormation sees it."""
    translator = _sam_translator.Translator({}, _sam_parser.Parser())
    translated: dict[str, Any] = translator.translate(template, {})
    return translated


def lint(template: Path) -> list[Any]:
    """Return the findings of cfn-lint."""
    found: list[Any] = _cfnlint.lint_file(template)
    return found


def find_errors_of_description(document: dict[str, Any]) -> list[Any]:
    """Return the errors of an OpenAPI description."""
    return [*_openapi.OpenAPIV31SpecValidator(document).iter_errors()]


def schema_validator(schema: Any) -> Any:
    """Return the validator of a schema in an OpenAPI description."""
    return _schema.OAS31Validator(schema)
