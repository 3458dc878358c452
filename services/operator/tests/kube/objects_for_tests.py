"""Small objects for the tests of this folder."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]


def pod(name: str = "p", namespace: str = "ns", **labels: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {},
    }


def scaled_object(name: str = "s", namespace: str = "ns") -> Object:
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {},
    }
