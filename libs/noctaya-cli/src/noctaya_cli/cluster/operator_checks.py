"""Whether an operator runs, leads, has its rights, and is of this version."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from importlib.metadata import version
from typing import Final, Protocol

from noctaya_api import names

from noctaya_cli.cluster.access import Object, Reader, core_path
from noctaya_cli.cluster.finding import Finding, good, problem, warning

SELECTOR: Final = "app.kubernetes.io/component=controller-manager,app.kubernetes.io/name=noctaya"
STALE_LEASE: Final = 30.0
"""Seconds; twice the Lease's duration, so that a hand-over is not taken for an outage."""
ESSENTIAL: Final = (
    ("update", names.GROUP, "llmservices", "status"),
    ("create", "apps", "deployments", ""),
    ("patch", "", "services", ""),
    ("get", "", "secrets", ""),
    ("create", "batch", "jobs", ""),
    ("create", "keda.sh", "scaledobjects", ""),
    ("patch", "", "pods", ""),
)
"""Verb, group, resource, subresource without which services don't come up."""


class Reviewer(Reader, Protocol):
    """A cluster that can be asked for what somebody may do."""

    def create(self, path: str, obj: Object) -> Object:
        """Post a review."""


def check_operator(cluster: Reader, *, now: datetime) -> Iterator[Finding]:
    """Deployment, Lease and version."""
    found = cluster.items(core_path("deployments", group="apps/v1"), labels=SELECTOR)
    if not found:
        yield problem(
            "operator",
            "no operator is installed",
            remedy="helm install noctaya charts/operator --namespace noctaya-system --create-namespace",
        )
        return
    for each in found:
        meta = each.get("metadata") or {}
        namespace, name = str(meta.get("namespace")), str(meta.get("name"))
        wanted = (each.get("spec") or {}).get("replicas", 1)
        ready = (each.get("status") or {}).get("readyReplicas") or 0
        image = str(_container(each).get("image") or "")
        if not ready:
            yield problem(
                "operator",
                f"{namespace}/{name}: none of {wanted} Pods is ready, so no service changes",
                remedy=f"kubectl -n {namespace} describe pods -l {SELECTOR}",
            )
        elif ready < wanted:
            yield warning(
                "operator",
                f"{namespace}/{name}: {ready} of {wanted} Pods ready",
                remedy=f"kubectl -n {namespace} describe pods -l {SELECTOR}",
            )
        else:
            yield good("operator", f"{namespace}/{name}: {ready} ready, {image}")
        tag = image.rpartition(":")[2] if ":" in image.rpartition("/")[2] else ""
        own = version("noctaya-cli")
        if tag and "@" not in image and tag.lstrip("v") != own:
            yield warning(
                "versions",
                f"the operator is {tag}, this command is {own}",
                remedy="Use the same version of both, or read findings with that in mind.",
            )
        yield from _lease(cluster, namespace, elects=_elects(each), now=now)


def check_rights(cluster: Reviewer) -> Iterator[Finding]:
    """What the operator's service account may do, asked of the API server."""
    for each in cluster.items(core_path("deployments", group="apps/v1"), labels=SELECTOR):
        namespace = str((each.get("metadata") or {}).get("namespace"))
        pod = ((each.get("spec") or {}).get("template") or {}).get("spec") or {}
        account = str(pod.get("serviceAccountName") or "default")
        watched = _watched(each)
        missing = [
            f"{verb} {resource}{'/' + sub if sub else ''}"
            for verb, group, resource, sub in ESSENTIAL
            if not _may(
                cluster, f"system:serviceaccount:{namespace}:{account}", verb, group, resource, sub, watched
            )
        ]
        if missing:
            yield problem(
                "rights",
                f"service account {namespace}/{account} may not: {', '.join(missing)}",
                remedy="helm upgrade with the chart's own roles, or extend the role you wrote.",
            )
        else:
            yield good("rights", f"service account {namespace}/{account} may do what services need")


def _may(  # noqa: PLR0917 - the parts of one right
    cluster: Reviewer, user: str, verb: str, group: str, resource: str, sub: str, namespace: str
) -> bool:
    attributes = {"verb": verb, "group": group, "resource": resource, "namespace": namespace}
    if sub:
        attributes["subresource"] = sub
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "groups": ["system:authenticated"], "resourceAttributes": attributes},
    }
    answer = cluster.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool((answer.get("status") or {}).get("allowed"))


def _lease(cluster: Reader, namespace: str, *, elects: bool, now: datetime) -> Iterator[Finding]:
    if not elects:
        return
    leases = core_path("leases", namespace, group="coordination.k8s.io/v1")
    found = [
        each
        for each in cluster.items(leases)
        if (each.get("metadata") or {}).get("name") == names.LEADER_LEASE
    ]
    remedy = f"kubectl -n {namespace} logs -l {SELECTOR} | grep -i lease"
    if not found:
        yield problem("operator", f"no operator in {namespace} has ever led", remedy=remedy)
        return
    spec = found[0].get("spec") or {}
    holder, renewed = str(spec.get("holderIdentity") or ""), str(spec.get("renewTime") or "")
    if not holder:
        yield problem("operator", "no operator leads at the moment", remedy=remedy)
        return
    silent = (now - datetime.fromisoformat(renewed)).total_seconds() if renewed else STALE_LEASE + 1
    if silent > STALE_LEASE:
        yield problem(
            "operator", f"the leader {holder} has not renewed its Lease for {silent:.0f} s", remedy=remedy
        )
    else:
        yield good("operator", f"{holder} leads")


def _elects(deployment: Object) -> bool:
    return any(
        str(word).startswith("--leader-elect") and not str(word).endswith("=false")
        for word in _args(deployment)
    )


def _watched(deployment: Object) -> str:
    """One namespace the operator works in; empty for all."""
    for word in _args(deployment):
        name, _, value = str(word).partition("=")
        if name == "--namespaces" and value:
            return value.split(",")[0]
    return ""


def _args(deployment: Object) -> list[object]:
    args = _container(deployment).get("args")
    return args if isinstance(args, list) else []


def _container(deployment: Object) -> Object:
    containers = (((deployment.get("spec") or {}).get("template") or {}).get("spec") or {}).get(
        "containers"
    ) or []
    return containers[0] if containers and isinstance(containers[0], dict) else {}
