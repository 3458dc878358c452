"""Our images on the nodes and our chart in the cluster: what has to be there before a scenario begins."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import noctaya_parts
from noctaya_cluster import Cluster
from noctaya_engine import images
from noctaya_parts.locking import locked

Report = Callable[[str], None]

RELEASE: Final = "noctaya"
NAMESPACE: Final = "noctaya-system"
OPERATOR: Final = "noctaya-controller-manager"
OPERATOR_LABELS: Final = "app.kubernetes.io/name=noctaya,app.kubernetes.io/component=controller-manager"
LEASE: Final = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/6d7012cb.noctaya.io"
REPOSITORY: Final = Path(__file__).parents[4]
"""This package is used in place, from a checkout."""
CHART: Final = REPOSITORY / "charts" / "operator"
IMAGES: Final = ("operator", "gateway", "aggregate-scaler", "model-stub", "llamacpp-server")
DELIVERY_IMAGES: Final = ("prewarm-agent", "oras", "model-hub")
"""What the download of a model needs, and where the scenarios' models come from."""
INSTALL_SECONDS: Final = 240


class HelmFailed(Exception):
    """helm refused or did not finish; the message is its own."""


@dataclass(frozen=True, kw_only=True)
class Helm:
    """helm against one cluster."""

    program: Path
    kubeconfig: Path

    def run(self, *arguments: str, within: float = INSTALL_SECONDS + 60) -> str:
        """What it says. Raises HelmFailed."""
        argv = [str(self.program), f"--kubeconfig={self.kubeconfig}", *arguments]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=within)
        if done.returncode != 0:
            raise HelmFailed(f"helm {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout


class Release:
    """The operator's chart in one cluster.

    Args:
        helm: for the cluster.
        folder: for the lock of several test processes.
    """

    def __init__(self, helm: Helm, folder: Path) -> None:
        self._helm = helm
        self._lock = folder / "release.lock"

    def ensure(self, *, gateways: int, report: Report = print) -> None:
        """The chart of this checkout is installed with so many gateways a service; one test process does it.

        Raises HelmFailed.
        """
        with locked(
            self._lock, waiting=lambda: report("another test process is installing the chart, waiting")
        ):
            wanted = {
                "gateway": {"replicas": gateways},
                "podAnnotation": chart_hash(CHART),
                "tracing": None,
            }
            if self._values() != wanted:
                self.install(gateways=gateways)

    def install(self, *, gateways: int, extra: Sequence[str] = ()) -> str:
        """Install or upgrade, and wait until the operators are ready; helm's notes. Raises HelmFailed."""
        return self._helm.run(
            "upgrade",
            "--install",
            RELEASE,
            str(CHART),
            f"--namespace={NAMESPACE}",
            "--create-namespace",
            f"--set=gateway.replicas={gateways}",
            f"--set-string=operator.podAnnotations.chart={chart_hash(CHART)}",
            "--wait",
            f"--timeout={INSTALL_SECONDS}s",
            *extra,
        )

    def uninstall(self) -> None:
        """Take the release away. Raises HelmFailed."""
        self._helm.run("uninstall", RELEASE, f"--namespace={NAMESPACE}", "--wait", "--ignore-not-found")

    def _values(self) -> dict[str, Any]:
        """What the installed release was installed with; empty when there is none or it failed."""
        found = json.loads(self._helm.run("list", f"--namespace={NAMESPACE}", "--output=json"))
        if not any(each["name"] == RELEASE and each["status"] == "deployed" for each in found):
            return {}
        values = (
            json.loads(self._helm.run("get", "values", RELEASE, f"--namespace={NAMESPACE}", "--output=json"))
            or {}
        )  # null for one that was installed without any
        annotations = values.get("operator", {}).get("podAnnotations", {})
        return {
            "gateway": values.get("gateway"),
            "podAnnotation": annotations.get("chart"),
            "tracing": values.get("tracing"),
        }


def chart_hash(chart: Path) -> str:
    """Of a chart and everything in it: another chart is another release."""
    digest = hashlib.sha256()
    for file in sorted(chart.rglob("*")):
        if file.is_file():
            digest.update(f"{file.relative_to(chart)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def helm_for(cluster: Cluster, *, report: Report = print) -> Helm:
    """helm, pinned, for a cluster."""
    return Helm(program=noctaya_parts.ensure("helm", report=report)["helm"], kubeconfig=cluster.kubeconfig)


def load_images(
    cluster: Cluster,
    folder: Path,
    *,
    identity: str,
    names: Sequence[str] = IMAGES,
    stamp_name: str = "loaded.json",
    report: Report = print,
) -> None:
    """Build what is not built and bring to the nodes what they do not have yet.

    Args:
        cluster: where to.
        folder: remembers which build each cluster has.
        identity: of the cluster, another one after it was made anew.
        names: of the images.
        stamp_name: where it is remembered, one for each set of names.
        report: told what happens.
    """
    with locked(folder / "images.lock", waiting=lambda: report("another test process loads images, waiting")):
        built = images.ensure(*names, report=report)
        stamp = folder / stamp_name
        known = json.loads(stamp.read_text()) if stamp.exists() else {}
        there = known.get("images", {}) if known.get("cluster") == identity else {}
        missing = [each for each in built.values() if there.get(each.name) != each.key]
        if missing:
            report(f"loading {', '.join(each.name for each in missing)}")
            cluster.load_image(*(each.tar for each in missing))
        partial = stamp.with_suffix(f".{os.getpid()}")
        keys = {each.name: each.key for each in built.values()}
        partial.write_text(json.dumps({"cluster": identity, "images": keys}))
        partial.replace(stamp)
