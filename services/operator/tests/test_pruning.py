"""What is kept of cached objects: enough, little, and nothing that changes by itself."""

from __future__ import annotations

from typing import Any

from noctaya_operator import pruning
from noctaya_operator.kube.objects import Object


def obj(kind: str, **more: Any) -> Object:
    metadata = {
        "name": "x",
        "namespace": "team",
        "uid": "u",
        "resourceVersion": "7",
        "labels": {"a": "1"},
        "annotations": {"b": "2"},
        "managedFields": [{"manager": "kubelet"}],
    }
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **more}


IDENTITY = {"name": "x", "namespace": "team", "uid": "u", "labels": {"a": "1"}}


def test_a_pod_keeps_where_and_how_it_is() -> None:
    spec = {"nodeName": "n", "containers": [{"name": "serving", "image": "i", "env": [1]}], "volumes": [1]}
    status = {"phase": "Running", "podIP": "10.0.0.1", "conditions": [], "qosClass": "Burstable"}
    assert pruning.keep_pod(obj("Pod", spec=spec, status=status)) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": IDENTITY,
        "spec": {"nodeName": "n", "containers": [{"name": "serving", "image": "i"}]},
        "status": {"phase": "Running", "podIP": "10.0.0.1", "conditions": []},
    }


def test_a_slice_keeps_how_many_are_ready() -> None:
    endpoints = [
        {"addresses": ["a"], "conditions": {"ready": True}},
        {"addresses": ["b"], "conditions": {"ready": False}},
        {"addresses": ["c"]},
    ]
    ports = [{"name": "grpc", "port": 9090, "protocol": "TCP"}]
    assert pruning.keep_slice(obj("EndpointSlice", endpoints=endpoints, ports=ports)) == {
        "apiVersion": "v1",
        "kind": "EndpointSlice",
        "metadata": IDENTITY,
        "ports": [{"name": "grpc", "port": 9090}],
        "readyEndpoints": 2,
    }


def test_an_autoscaler_keeps_no_measurements() -> None:
    condition = {"type": "ScalingActive", "status": "True", "lastTransitionTime": "now"}
    kept = pruning.keep_hpa(
        obj(
            "HorizontalPodAutoscaler",
            spec={"metrics": [{"type": "External", "external": {}}], "maxReplicas": 3},
            status={"currentMetrics": [1], "conditions": [condition]},
        )
    )
    assert kept == {
        "apiVersion": "v1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": IDENTITY,
        "spec": {"metrics": [{"type": "External"}]},
        "status": {"conditions": [{"type": "ScalingActive", "status": "True"}]},
    }


def test_a_written_object_keeps_its_spec_and_a_status_without_noise() -> None:
    given = obj(
        "ScaledObject", spec={"a": 1}, status={"lastActiveTime": "now", "conditions": [], "hpaName": "h"}
    )
    kept = pruning.keep_written(given)
    assert kept["spec"] == {"a": 1}
    assert kept["status"] == {"conditions": [], "hpaName": "h"}
    assert kept["metadata"] == {**IDENTITY, "resourceVersion": "7", "annotations": {"b": "2"}}


def test_odd_objects_are_kept_as_far_as_they_make_sense() -> None:
    for keep in (pruning.keep_pod, pruning.keep_slice, pruning.keep_hpa, pruning.keep_class):
        kept = keep({"metadata": {"name": "x"}, "spec": "odd", "status": 3})
        assert kept["metadata"] == {"name": "x"}
    assert pruning.keep_written({"metadata": {"name": "x"}, "status": None})["metadata"] == {"name": "x"}
