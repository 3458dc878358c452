"""Drift: what differs, what is no longer wanted, and what is neither."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from noctaya_operator.drift import (
    differs,
    drifted,
    keep_own_fields,
    owned_by_creation,
    owned_fields,
    owns_more,
)
from noctaya_operator.kube.objects import Object
from samples import objects, plan, service

DESIRED: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "chat", "namespace": "team", "labels": {"a": "1"}},
    "spec": {
        "template": {
            "spec": {
                "containers": [
                    {
                        "name": "serving",
                        "args": ["one", "two"],
                        "env": [{"name": "A", "value": "1"}, {"name": "EMPTY", "value": ""}],
                        "ports": [{"containerPort": 8000, "protocol": "TCP"}],
                        "resources": {"limits": {"memory": "2Gi"}},
                        "readOnly": False,
                    }
                ],
                "volumes": [],
            }
        }
    },
}


def live(**container: Any) -> Object:
    """What the server stores of `DESIRED`: defaults added, empty values left out."""
    stored = deepcopy(DESIRED)
    stored["metadata"] |= {"uid": "u", "labels": {"a": "1", "theirs": "x"}, "annotations": {"theirs": "y"}}
    stored["spec"] |= {"replicas": 3, "revisionHistoryLimit": 10}
    pod = stored["spec"]["template"]["spec"]
    del pod["volumes"]
    pod["restartPolicy"] = "Always"
    pod["containers"].append({"name": "sidecar", "image": "mesh"})
    mine = pod["containers"][0]
    mine["env"][1].pop("value")
    mine.pop("readOnly")
    mine |= {"imagePullPolicy": "Always", "resources": {"limits": {"memory": "2048Mi"}}, **container}
    return stored


def test_defaults_additions_and_spellings_are_no_drift() -> None:
    assert not differs(DESIRED, live())


@pytest.mark.parametrize(
    "container",
    [
        {"args": ["one"]},
        {"args": ["two", "one"]},
        {"args": ["one", "two", "three"]},
        {"env": [{"name": "A", "value": "2"}, {"name": "EMPTY"}]},
        {"env": [{"name": "EMPTY"}, {"name": "A", "value": "1"}]},
        {"env": [{"name": "A", "value": "1"}]},
        {"ports": [{"containerPort": 8001, "protocol": "TCP"}]},
        {"ports": None},
        {"resources": {"limits": {"memory": "3Gi"}}},
        {"resources": {}},
        {"readOnly": True},
    ],
)
def test_another_value_is_drift(container: Object) -> None:
    assert differs(DESIRED, live(**container))


def test_a_label_that_was_changed_is_drift() -> None:
    changed = live()
    changed["metadata"]["labels"]["a"] = "2"
    assert differs(DESIRED, changed)


def test_a_number_is_no_switch() -> None:
    assert differs({"spec": {"on": True}}, {"spec": {"on": 1}})


OWNED: Object = {
    "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
    "f:spec": {
        "f:template": {
            "f:spec": {
                "f:containers": {
                    'k:{"name":"serving"}': {
                        ".": {},
                        "f:args": {},
                        "f:env": {'k:{"name":"A"}': {".": {}, "f:value": {}}},
                        "f:ports": {'k:{"containerPort":8000,"protocol":"TCP"}': {".": {}}},
                    }
                }
            }
        }
    },
}


def test_owning_what_is_wanted_is_no_drift() -> None:
    assert not owns_more(OWNED, DESIRED)


@pytest.mark.parametrize(
    "owned",
    [
        {"f:metadata": {"f:annotations": {"f:paused": {}}}},
        {"f:spec": {"f:replicas": {}}},
        {"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"gone"}': {".": {}}}}}}},
        {"f:spec": {"f:template": {"f:spec": {"f:nodeSelector": {}}}}},
        {"f:spec": {"f:set": {'v:"x"': {}}}},
    ],
)
def test_owning_more_is_drift(owned: Object) -> None:
    assert owns_more(owned, DESIRED)


def entry(manager: str, fields: Object, operation: str = "Apply", **more: str) -> Object:
    return {"manager": manager, "operation": operation, "fieldsV1": fields, **more}


def test_only_what_we_applied_is_ours() -> None:
    stored = live()
    stored["metadata"]["managedFields"] = [
        entry("keda", {"f:spec": {"f:replicas": {}}}, "Update"),
        entry("noctaya-operator", {"f:status": {}}, subresource="status"),
        entry("noctaya-operator", OWNED),
    ]
    assert owned_fields(stored) == OWNED


def test_what_is_kept_of_ownership_is_shared_text_that_says_the_same() -> None:
    first, second = live(), live()
    for uid, stored in (("u1", first), ("u2", second)):
        reference: Object = {"f:ownerReferences": {f'k:{{"uid":"{uid}"}}': {}}}
        owned = {**OWNED, "f:metadata": {**OWNED["f:metadata"], **reference}}
        stored["metadata"]["managedFields"] = [entry("noctaya-operator", owned)]
        keep_own_fields(stored)
    texts = [stored["metadata"]["managedFields"][0]["fieldsV1"] for stored in (first, second)]
    assert texts[0] is texts[1]
    assert owned_fields(first) == OWNED
    assert not drifted(DESIRED, first)


def test_every_rendered_object_is_no_drift_to_itself() -> None:
    given = service(cache={"strategy": "SharedPVC", "prewarm": True}, resources={"cpu": 2, "memory": "1Gi"})
    for rendered in objects(plan(given, gateways=2)).values():
        assert not drifted(rendered, deepcopy(rendered))


def test_what_the_creation_still_owns_is_remembered_until_it_is_given_up() -> None:
    made = {"manager": "noctaya-operator-create", "operation": "Update"}
    whole = {**made, "fieldsV1": {"f:spec": {"f:replicas": {}, "f:template": {}}}}
    rest = {**made, "fieldsV1": {"f:spec": {"f:replicas": {}}}}
    other = {"manager": "keda", "operation": "Update", "fieldsV1": {"f:spec": {"f:template": {}}}}
    for entries, owned in (
        ([whole], True),
        ([rest], False),
        ([other], False),
        ([other, whole], True),
        ([], False),
    ):
        live: Object = {"metadata": {"name": "chat", "managedFields": entries}}
        assert owned_by_creation(live) is owned
        keep_own_fields(live)
        assert owned_by_creation(live) is owned
        assert owned_fields(live) == {}
