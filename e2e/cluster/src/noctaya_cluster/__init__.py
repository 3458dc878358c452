"""A Kubernetes cluster with KEDA for tests: `choose_provider()`, `python -m noctaya_cluster up`."""

from __future__ import annotations

from .choice import choose_provider
from .errors import ClusterError, Unsupported
from .kubectl import Kubectl
from .provider import Cluster, Report

__all__ = ["Cluster", "ClusterError", "Kubectl", "Report", "Unsupported", "choose_provider"]
