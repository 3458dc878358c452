"""A healthy cluster on a fake API server, and the moment the tests look at it."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from noctaya_api import names
from noctaya_cli.cluster.access import Cluster, connect

from . import objects
from .fake_api import FakeApi

NOW = datetime(2026, 11, 30, 10, 0, 0, tzinfo=UTC)


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi() as server:
        pod = objects.gateway_pod()
        server.collections |= {
            objects.ALL_SERVICES: [objects.llm_service()],
            objects.OWN_SERVICES: [objects.llm_service()],
            objects.DEPLOYMENTS: [objects.operator(), objects.keda()],
            objects.EVENTS: [],
            "/api/v1/pods": [pod],
            "/api/v1/namespaces/models/pods": [pod],
            "/api/v1/namespaces/kube-system/services": [
                {"metadata": {"name": "kube-dns", "labels": {"k8s-app": "kube-dns"}}}
            ],
            "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices": [
                {
                    "metadata": {"labels": {"kubernetes.io/service-name": "kube-dns"}},
                    "endpoints": [{"conditions": {"ready": True}}],
                }
            ],
            "/apis/storage.k8s.io/v1/storageclasses": [
                {
                    "metadata": {
                        "name": "standard",
                        "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
                    }
                }
            ],
            "/apis/coordination.k8s.io/v1/namespaces/noctaya-system/leases": [objects.lease()],
        }
        for crd in (
            f"llmservices.{names.GROUP}",
            f"inferenceruntimes.{names.GROUP}",
            "scaledobjects.keda.sh",
        ):
            server.objects[f"{objects.CRDS}/{crd}"] = objects.established()
        server.objects["/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.external.metrics.k8s.io"] = (
            objects.established("Available")
        )
        server.objects[f"{objects.OWN_SERVICES}/chat"] = objects.llm_service()
        server.texts[objects.metrics_path(pod)] = objects.metrics()
        yield server


@pytest.fixture
def cluster(api: FakeApi, tmp_path: Path) -> Cluster:
    return connect(api.kubeconfig(tmp_path), None)
