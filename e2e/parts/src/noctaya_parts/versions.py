"""The one place where versions are pinned. After a change: `python -m noctaya_parts lock`."""

from __future__ import annotations

from typing import Final

KUBERNETES: Final = "1.34.4"
"""The newest minor that runs on cgroup v1 with containerd 1.6."""
ETCD: Final = "3.6.4"
KEDA: Final = "2.20.2"
COREDNS: Final = "1.14.7"
HELM: Final = "3.19.5"
HELM_KUBERNETES_MINOR: Final = "34"
"""That of the client libraries in it: what `helm template` renders for when it isn't told."""
ORAS: Final = "1.3.0"
"""That of the image which prewarm Jobs name, so that what stands in for it without a registry is the same."""
REGISTRY: Final = "3.0.0"
KUBE_ROUTER: Final = "2.1.0"
PAUSE: Final = "1"
"""Ours; raise it with every change of locks/pause/main.go."""
