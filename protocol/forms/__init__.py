"""Forms: what is asked, how an answer is checked, and the live document between the two."""

from __future__ import annotations

from greenroom.protocol.errors import FormError
from greenroom.protocol.forms.audit import audit_schema
from greenroom.protocol.forms.display import display_line, display_lines, sanitize_display_text
from greenroom.protocol.forms.document import FORM_EVENTS, Form, FormStatus
from greenroom.protocol.forms.evaluate import evaluate_field, evaluate_form
from greenroom.protocol.forms.guards import is_field_error, is_field_value, is_form_schema, is_form_values
from greenroom.protocol.forms.masking import MASK, mask_values
from greenroom.protocol.forms.messages import format_message
from greenroom.protocol.forms.outcome import (
    Abandoned,
    FormFailure,
    FormResult,
    FormSuccess,
    Outcome,
    Settled,
    Trial,
)
from greenroom.protocol.forms.parse import parse_form, parse_value, parse_values
from greenroom.protocol.forms.rules import applies_rule
from greenroom.protocol.forms.schema import (
    CheckboxField,
    ColorField,
    ConfirmField,
    Control,
    CustomRule,
    DateField,
    DatetimeField,
    EditorField,
    FieldChoice,
    FieldError,
    FieldRule,
    FileField,
    FormField,
    FormGroup,
    FormSchema,
    NumberField,
    PasswordField,
    RuleName,
    SelectField,
    TextField,
    TimeField,
    Value,
    extract_groups,
)
from greenroom.protocol.forms.serialize import serialize_form
from greenroom.protocol.forms.structure import SchemaFault
from greenroom.protocol.forms.values import (
    compute_defaults,
    extract_changes,
    matches_answer,
    matches_field,
    matches_value,
    matches_values,
)

__all__ = [
    "FORM_EVENTS",
    "MASK",
    "Abandoned",
    "CheckboxField",
    "ColorField",
    "ConfirmField",
    "Control",
    "CustomRule",
    "DateField",
    "DatetimeField",
    "EditorField",
    "FieldChoice",
    "FieldError",
    "FieldRule",
    "FileField",
    "Form",
    "FormError",
    "FormFailure",
    "FormField",
    "FormGroup",
    "FormResult",
    "FormSchema",
    "FormStatus",
    "FormSuccess",
    "NumberField",
    "Outcome",
    "PasswordField",
    "RuleName",
    "SchemaFault",
    "SelectField",
    "Settled",
    "TextField",
    "TimeField",
    "Trial",
    "Value",
    "applies_rule",
    "audit_schema",
    "compute_defaults",
    "display_line",
    "display_lines",
    "evaluate_field",
    "evaluate_form",
    "extract_changes",
    "extract_groups",
    "format_message",
    "is_field_error",
    "is_field_value",
    "is_form_schema",
    "is_form_values",
    "mask_values",
    "matches_answer",
    "matches_field",
    "matches_value",
    "matches_values",
    "parse_form",
    "parse_value",
    "parse_values",
    "sanitize_display_text",
    "serialize_form",
]
