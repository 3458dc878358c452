"""The operator's chart on a cluster for the time of the demo; what was there before stays."""

import json

from noctaya_cluster import Kubectl
from noctaya_scenarios.release import CHART, INSTALL_SECONDS, NAMESPACE, RELEASE, Helm

GROUP = "serving.noctaya.io"
IMAGES = ("operator", "gateway", "aggregate-scaler")
"""What the chart's objects and the operator's run; by their names in noctaya_engine."""


class DemoRelease:
    """Installs the chart unless it is there, and removes what it has installed."""

    def __init__(self, helm: Helm, kubectl: Kubectl) -> None:
        self._helm = helm
        self._kubectl = kubectl
        self._crds_before: set[str] = set()
        self.made = False
        """Whether it is ours to remove."""

    def ensure(self) -> str:
        """The chart with its version, as `noctaya-0.5.0`. Raises HelmFailed."""
        if (found := self._installed()) is not None:
            return found
        self._crds_before = self._crds()
        self.made = True
        where = (f"--namespace={NAMESPACE}", "--create-namespace")
        self._helm.run("install", RELEASE, str(CHART), *where, "--wait", f"--timeout={INSTALL_SECONDS}s")
        return self._installed() or "nothing"

    def remove(self) -> None:
        """Take away what `ensure` has made, CRDs and namespace too. Raises HelmFailed, ClusterError."""
        if not self.made:
            return
        self._helm.run("uninstall", RELEASE, f"--namespace={NAMESPACE}", "--wait", "--ignore-not-found")
        if crds := sorted(self._crds() - self._crds_before):
            self._kubectl.run("delete", "--ignore-not-found", "customresourcedefinitions", *crds)
        self._kubectl.run("delete", "--ignore-not-found", "namespace", NAMESPACE)
        self.made = False

    def _installed(self) -> str | None:
        listed = self._helm.run(
            "list", f"--namespace={NAMESPACE}", "--output=json", f"--filter=^{RELEASE}$", "--deployed"
        )
        found = json.loads(listed)
        return str(found[0]["chart"]) if found else None

    def _crds(self) -> set[str]:
        listed = self._kubectl.run("get", "customresourcedefinitions", "--output=name").split()
        return {name.partition("/")[2] for name in listed if name.endswith(f".{GROUP}")}
