# SPDX-License-Identifier: ISC

"""As much of JSON Schema as our documents need, and a complaint about every
word of a schema that is more than that."""

import re

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool,
         "null": type(None)}
KNOWN = {"$schema", "title", "description", "type", "properties", "required",
         "additionalProperties", "items", "enum", "const", "minimum",
         "maximum", "minLength", "maxLength", "maxItems", "pattern"}


def of_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def check(value, schema, where="$"):
    """What is wrong with a value, as a list of texts."""
    if schema is True:
        return []
    if schema is False:
        return [f"{where}: must not be there"]
    assert not set(schema) - KNOWN, f"{where}: {set(schema) - KNOWN}"
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(of_type(value, kind) for kind in kinds):
        return [f"{where}: {value!r} is not of type {kinds}"]
    wrong = [f"{where}: {value!r} against {schema}"] \
        if breaks(value, schema) else []
    if isinstance(value, dict):
        wrong += members(value, schema, where)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            wrong += check(item, schema.get("items", True), f"{where}[{i}]")
    return wrong


def breaks(value, schema):
    if "enum" in schema and value not in schema["enum"] or \
            "const" in schema and value != schema["const"]:
        return True
    if isinstance(value, str):
        return len(value) < schema.get("minLength", 0) or \
            len(value) > schema.get("maxLength", len(value)) or \
            not re.search(schema.get("pattern", ""), value)
    if of_type(value, "integer"):
        return value < schema.get("minimum", value) or \
            value > schema.get("maximum", value)
    return isinstance(value, list) and \
        len(value) > schema.get("maxItems", len(value))


def members(value, schema, where):
    known = schema.get("properties", {})
    wrong = [f"{where}: {name} is missing"
             for name in schema.get("required", []) if name not in value]
    for name, member in value.items():
        wrong += check(member, known.get(
            name, schema.get("additionalProperties", True)),
            f"{where}.{name}")
    return wrong
