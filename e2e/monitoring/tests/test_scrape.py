"""A ServiceMonitor as a scrape job: what it selects is what the Prometheus Operator selects."""

import json
from pathlib import Path

import pytest
import yaml
from noctaya_monitoring.discovery import targets
from noctaya_monitoring.scrape import Place, jobs

from .conftest import EXAMPLE

MONITORS = list(yaml.safe_load_all((EXAMPLE / "servicemonitors.yaml").read_text()))


def test_every_shipped_monitor_is_a_job_of_its_path_that_drops_what_has_no_place() -> None:
    found = jobs(MONITORS, found=Path("targets.json"), places=[])
    assert [job["job_name"] for job in found] == [
        "serviceMonitor/noctaya-llmservices/0",
        "serviceMonitor/noctaya-operator/0",
    ]
    for job in found:
        assert job["metrics_path"] == "/metrics"
        assert job["file_sd_configs"] == [{"files": ["targets.json"]}]
        assert job["relabel_configs"][-1]["action"] == "keep"
    assert [job["honor_labels"] for job in found] == [False, True]


def test_a_place_stands_for_the_pods_it_names_alone() -> None:
    place = Place(namespace="models", service="chat", pod="chat-gateway-1", address="127.0.0.1:1")
    relabelings = jobs(MONITORS[:1], found=Path("f"), places=[place])[0]["relabel_configs"]
    (rule,) = [each for each in relabelings if each.get("replacement") == "127.0.0.1:1"]
    assert rule["source_labels"] == ["namespace", "service", "pod"]
    assert rule["regex"] == "models;chat;chat-gateway-1"


@pytest.mark.parametrize(
    "spec",
    [
        {"namespaceSelector": {"matchNames": ["a"]}, "selector": {}},
        {
            "namespaceSelector": {"any": True},
            "selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
        },
    ],
    ids=["namespaces", "operator"],
)
def test_a_selector_that_is_not_understood_is_refused(spec: dict[str, object]) -> None:
    monitor = {"metadata": {"name": "m"}, "spec": {**spec, "endpoints": [{"port": "http"}]}}
    with pytest.raises(ValueError, match="understood here"):
        jobs([monitor], found=Path("f"), places=[])


def test_a_slice_gives_a_target_for_each_address_and_port_with_the_labels_of_its_service() -> None:
    service = {"metadata": {"name": "chat", "namespace": "models", "labels": {"a.io/b-c": "d"}}}
    endpoints = {
        "ports": [{"name": "http", "port": 8080}, {"name": "grpc", "port": 9090}],
        "endpoints": [{"addresses": ["10.0.0.1"], "targetRef": {"kind": "Pod", "name": "p"}}],
    }
    http, grpc = targets(endpoints, service)
    assert (http["targets"], grpc["targets"]) == (["10.0.0.1:8080"], ["10.0.0.1:9090"])
    meta = "__meta_kubernetes_"
    assert http["labels"] == {
        f"{meta}namespace": "models",
        f"{meta}service_name": "chat",
        f"{meta}service_label_a_io_b_c": "d",
        f"{meta}service_labelpresent_a_io_b_c": "true",
        f"{meta}endpointslice_address_target_kind": "Pod",
        f"{meta}endpointslice_address_target_name": "p",
        f"{meta}endpointslice_port_name": "http",
    }
    assert json.loads(json.dumps(http)) == http


def test_a_slice_without_endpoints_gives_none() -> None:
    service = {"metadata": {"name": "chat", "namespace": "models"}}
    assert list(targets({"ports": None, "endpoints": None}, service)) == []
