"""Schemas that values of several charts have in common, by the name that `@schema` calls them.

What Kubernetes checks itself - affinities, peers, tolerations - is only said to be an object: the API server
knows it better and in its own version.
"""

from __future__ import annotations

from typing import Any, Final

Schema = dict[str, Any]

_STRING_MAP: Final[Schema] = {"type": "object", "additionalProperties": {"type": "string"}}
_DNS_LABEL: Final = "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
_QUANTITY: Final[Schema] = {
    "type": "string",
    "pattern": r"^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$",
}
_AMOUNTS: Final[Schema] = {
    "type": "object",
    "properties": {"cpu": _QUANTITY, "memory": _QUANTITY},
    "additionalProperties": False,
}
_DURATION: Final = r"([0-9]+(\.[0-9]+)?(ms|s|m|h))+"

DEFINITIONS: Final[dict[str, Schema]] = {
    "labels": _STRING_MAP,
    "annotations": _STRING_MAP,
    "strings": {"type": "array", "items": {"type": "string", "minLength": 1}},
    "object": {"type": "object"},
    "objects": {"type": "array", "items": {"type": "object"}},
    "namespaces": {
        "type": "array",
        "items": {"type": "string", "pattern": _DNS_LABEL},
    },
    "pullSecrets": {
        "type": "array",
        "items": {
            "anyOf": [
                {"type": "string", "minLength": 1},
                {
                    "type": "object",
                    "properties": {"name": {"type": "string", "minLength": 1}},
                    "required": ["name"],
                    "additionalProperties": False,
                },
            ]
        },
    },
    "env": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 1},
                "value": {"type": "string"},
                "valueFrom": {"type": "object"},
            },
            "required": ["name"],
            "additionalProperties": False,
        },
    },
    "cpuAndMemory": {
        "type": "object",
        "properties": {"limits": _AMOUNTS, "requests": _AMOUNTS},
        "additionalProperties": False,
    },
    "resources": {
        "type": "object",
        "properties": {
            kind: {"type": "object", "additionalProperties": {"type": ["string", "integer"]}}
            for kind in ("limits", "requests")
        },
        "additionalProperties": False,
    },
    "duration": {"type": "string", "pattern": f"^{_DURATION}$"},
    "optionalDuration": {"type": "string", "pattern": f"^({_DURATION})?$"},
    "serviceName": {"type": "string", "pattern": "^([a-z]([-a-z0-9]{0,53}[a-z0-9])?)?$"},
    "port": {"type": "integer", "minimum": 1, "maximum": 65535},
    "portOrName": {
        "anyOf": [
            {"type": "integer", "minimum": 1, "maximum": 65535},
            {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?$"},
        ]
    },
    # `--set` gives fractions as text.
    "ratio": {
        "type": ["number", "string"],
        "minimum": 0,
        "maximum": 1,
        "pattern": r"^(0(\.[0-9]+)?|1(\.0+)?)$",
    },
    "pullPolicy": {"type": "string", "enum": ["", "Always", "IfNotPresent", "Never"]},
    "logLevel": {"type": "string", "enum": ["debug", "info", "warning", "error", "critical"]},
}
