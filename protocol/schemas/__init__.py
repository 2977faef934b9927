"""JSON Schema from structs, what is read by it, and the gates that untrusted values pass."""

from greenroom.protocol.schemas.advertise import Advertised, advertise, advertising_faults
from greenroom.protocol.schemas.arguments import Arguments
from greenroom.protocol.schemas.coerce import REFUSED, Refused
from greenroom.protocol.schemas.contract import Contract
from greenroom.protocol.schemas.explain import Fault, fault_text
from greenroom.protocol.schemas.gates import NotJson, clone_json, parse_json_value
from greenroom.protocol.schemas.parameters import canonical_schema, flat_schema
from greenroom.protocol.schemas.subschemas import Schema
from greenroom.protocol.schemas.variants import Refusal, Variants

__all__ = [
    "REFUSED",
    "Advertised",
    "Arguments",
    "Contract",
    "Fault",
    "NotJson",
    "Refusal",
    "Refused",
    "Schema",
    "Variants",
    "advertise",
    "advertising_faults",
    "canonical_schema",
    "clone_json",
    "fault_text",
    "flat_schema",
    "parse_json_value",
]
