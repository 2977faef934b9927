"""What makes a schema unfit to be asked, although it has the shape of one.

The audit decides before any person sees the form: a default that its field cannot hold, a rule that means nothing on
its control, limits that no answer can meet, a size that no client should be made to take.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final, cast

from msgspec import UNSET

from greenroom.protocol.errors import PatternError
from greenroom.protocol.forms import limits
from greenroom.protocol.forms.quoting import listed, quoted
from greenroom.protocol.forms.rules import LISTS, TEMPORAL, TEXTS, applies_rule
from greenroom.protocol.forms.schema import (
    CheckboxField,
    FieldRule,
    FormField,
    FormSchema,
    SelectField,
    control_of,
)
from greenroom.protocol.forms.serialize import project
from greenroom.protocol.forms.structure import SchemaFault, read_schema
from greenroom.protocol.forms.values import SHAPES, SURROGATE, declared_default, enabled_choices, holder
from greenroom.protocol.patterns import compile_pattern
from greenroom.protocol.text import utf16_length

__all__ = ["audit_schema"]

_RESERVED: Final = "__proto__"
"""A name that clients in ECMAScript cannot keep as a key of their records."""

_SIZED: Final = TEXTS | LISTS
"""Controls whose minimum and maximum count something."""


def audit_schema(schema: object) -> list[SchemaFault]:
    """Every fault of a schema or document, in a fixed order; an empty list means that forms of it can be opened.

    What has not even the shape of a schema is reported as such. Else sizes come first, one fault each, not measured
    further once they are exceeded; then the groups, then the fields: name, group, default, choices, rules.
    """
    read, faults = read_schema(schema)
    return faults if read is None else audit(read)


def audit(schema: FormSchema) -> list[SchemaFault]:
    """The same for a schema whose structure is known to be right."""
    return list(islice(_faults(schema), limits.FAULTS))


def _faults(schema: FormSchema) -> Iterator[SchemaFault]:
    yield from _sizes(schema)
    groups: set[str] = set()
    for group in schema.groups or ():
        if group.name in groups:
            yield SchemaFault("GROUP_REPEATED", None, f"The group {quoted(group.name)} is declared more than once.")
        groups.add(group.name)
    names: set[str] = set()
    for field in schema.fields:
        yield from _named(field, names, groups)
        yield from _offered(field)
        if field.rule is not UNSET:
            yield from _ruled(field, field.rule)
        names.add(field.name)


def _sizes(schema: FormSchema) -> Iterator[SchemaFault]:
    """Whether the document as a whole keeps within the limits."""
    if len(schema.fields) > limits.FIELDS:
        yield SchemaFault("FIELDS", None, f"A form has at most {limits.FIELDS} fields.")
    if schema.groups is not UNSET and len(schema.groups) > limits.GROUPS:
        yield SchemaFault("GROUPS", None, f"A form has at most {limits.GROUPS} groups.")
    for field in schema.fields:
        if isinstance(field, SelectField | CheckboxField) and len(field.choices) > limits.CHOICES:
            yield SchemaFault("CHOICES", field.name, f"A field offers at most {limits.CHOICES} choices.")
            break
    if any(_exceeds(name, limits.NAME) for name in _names(schema)):
        yield SchemaFault("NAME", None, f"A name has at most {limits.NAME} UTF-16 units.")
    longest, text, nodes, encodable = _measure(schema)
    if longest > limits.STRING:
        yield SchemaFault("STRING", None, f"A text of a form has at most {limits.STRING} UTF-16 units.")
    if text > limits.TEXT:
        yield SchemaFault("TEXT", None, f"The texts of a form have at most {limits.TEXT} UTF-16 units together.")
    if nodes > limits.NODES:
        yield SchemaFault("NODES", None, f"A form has at most {limits.NODES} records, lists and values together.")
    if not encodable:
        yield SchemaFault("SURROGATE", None, "A text of the form holds half of a surrogate pair, which has no UTF-8.")


def _names(schema: FormSchema) -> Iterator[str]:
    if schema.name is not UNSET:
        yield schema.name
    for group in schema.groups or ():
        yield group.name
    for field in schema.fields:
        yield field.name
        if field.group is not UNSET:
            yield field.group


def _measure(schema: FormSchema) -> tuple[int, int, int, bool]:
    """Units of the longest text, units of all texts, and nodes of a document; whether all of its text has a UTF-8 form.

    A walk over the document ends beyond the number of nodes that are allowed, a text is not counted beyond its limit.
    """
    longest = text = nodes = 0
    encodable = True
    stack: list[tuple[object, bool]] = [(project(schema), False)]
    while stack and nodes <= limits.NODES:
        value, meta = stack.pop()
        nodes += 1
        strings: list[str] = []
        if isinstance(value, dict):
            record = cast("dict[str, object]", value)
            strings = list(record) if meta else []
            stack.extend((item, meta or key == "meta") for key, item in record.items())
        elif isinstance(value, list):
            stack.extend((item, meta) for item in cast("list[object]", value))
        elif isinstance(value, str):
            strings = [value]
        for string in strings:
            units = len(string) if len(string) > limits.STRING else utf16_length(string)
            longest = max(longest, units)
            text += units
            encodable = encodable and SURROGATE.search(string) is None
    return longest, text, nodes, encodable


def _exceeds(text: str, limit: int) -> bool:
    # Units are never fewer than characters, and what is too long in characters is not encoded to count its units.
    return len(text) > limit or utf16_length(text) > limit


def _named(field: FormField, names: set[str], groups: set[str]) -> Iterator[SchemaFault]:
    """Whether the field can be told from the others and stands in a group that exists."""
    name = field.name
    if not name:
        yield SchemaFault("UNNAMED", name, "A field needs a name.")
    if name == _RESERVED:
        yield SchemaFault("RESERVED", name, f"A field cannot be named {_RESERVED}: clients could not keep its answer.")
    if name in names:
        yield SchemaFault("REPEATED", name, "Another field has this name already.")
    if field.group is not UNSET and field.group not in groups:
        yield SchemaFault(
            "GROUP", name, f"There is no group {quoted(field.group)}; declared are: {listed(sorted(groups))}."
        )


def _offered(field: FormField) -> Iterator[SchemaFault]:
    """Whether the field's default and choices leave a way to answer it."""
    default = declared_default(field)
    if default is not None and not holder(field)(default):
        yield SchemaFault(
            "DEFAULT", field.name, f"Its default is nothing that this {control_of(field)} field can hold."
        )
    if not isinstance(field, SelectField | CheckboxField):
        return
    values: set[str] = set()
    for choice in field.choices:
        if choice.value in values:
            yield SchemaFault("CHOICE_REPEATED", field.name, f"The choice {quoted(choice.value)} is offered twice.")
        values.add(choice.value)
    rule = field.rule
    if rule is UNSET:
        return
    enabled = len(enabled_choices(field))
    if isinstance(field, SelectField):
        if rule.required is True and field.open is not True and not enabled:
            yield SchemaFault("NO_CHOICE", field.name, "An answer is required, but no choice is enabled.")
    elif isinstance(rule.minimum, int | float) and rule.minimum > enabled:
        yield SchemaFault("FEW_CHOICES", field.name, f"Its minimum is above its {enabled} enabled choices.")


def _ruled(field: FormField, rule: FieldRule) -> Iterator[SchemaFault]:
    """Whether each rule means something on the control, and has an operand that an answer can meet."""
    control, name = control_of(field), field.name
    both = (("minimum", rule.minimum), ("maximum", rule.maximum))
    bounds = [(rule_name, bound) for rule_name, bound in both if bound is not UNSET]

    def inapplicable(rule_name: str) -> SchemaFault:
        return SchemaFault("INAPPLICABLE", name, f"The rule {rule_name} has no meaning on {control} fields.")

    for rule_name, bound in bounds:
        if not applies_rule(control, rule_name):
            yield inapplicable(rule_name)
        elif isinstance(bound, str) and control not in TEMPORAL:
            yield SchemaFault("OPERAND", name, f"Its {rule_name} must be a number.")
    for rule_name, bound in bounds:
        if control in TEMPORAL and not isinstance(bound, str):
            yield SchemaFault("OPERAND", name, f"Its {rule_name} must be a {control}, not a number.")
    if control in _SIZED and isinstance(rule.maximum, int | float) and rule.maximum < 0:
        yield SchemaFault("NEGATIVE", name, "Its maximum is below zero, which no answer can meet.")
    if rule.step is not UNSET:
        if not applies_rule(control, "step"):
            yield inapplicable("step")
        if rule.step <= 0:
            yield SchemaFault("STEP", name, "Its step must be above zero.")
    yield from (
        inapplicable(rule_name)
        for rule_name, stated in (
            ("pattern", rule.pattern is not UNSET),
            ("email", rule.email is True),
            ("url", rule.url is True),
            ("alphanumeric", rule.alphanumeric is True),
            ("integer", rule.integer is True),
        )
        if stated and not applies_rule(control, rule_name)
    )
    if rule.pattern is not UNSET:
        try:
            compile_pattern(rule.pattern, limit=limits.PATTERN)
        except PatternError as error:
            yield SchemaFault(f"PATTERN_{error.code}", name, f"Its pattern cannot be used: {error.message}")
    if _crossed(rule.minimum, rule.maximum):
        yield SchemaFault("EMPTY_RANGE", name, "Its minimum is above its maximum.")
    shape = SHAPES.get(type(field))
    for rule_name, bound in bounds:
        if control in TEMPORAL and isinstance(bound, str) and shape is not None and not shape.fullmatch(bound):
            yield SchemaFault("MALFORMED", name, f"Its {rule_name} is not written as a {control}.")


def _crossed(minimum: object, maximum: object) -> bool:
    if isinstance(minimum, str) and isinstance(maximum, str):
        return minimum > maximum
    return isinstance(minimum, int | float) and isinstance(maximum, int | float) and minimum > maximum
