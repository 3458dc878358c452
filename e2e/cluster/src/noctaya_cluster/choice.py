"""Which provider: the one asked for, or the first that can work here."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from noctaya_parts import ensure

from .commands import Run, run_command
from .errors import ClusterError
from .existing import FLAG, ExistingCluster
from .host.cluster import HostCluster
from .host.layout import default_state
from .host.requirements import missing_rights
from .kind import KindCluster
from .provider import Cluster, Report

PROVIDERS: Final = ("kind", "host", "existing")
ENVIRONMENT: Final = "NOCTAYA_E2E_CLUSTER"
STATE: Final = "NOCTAYA_CLUSTER_STATE"
"""Environment variable: another state folder for provider host, hence another cluster."""
SECONDS: Final = 15.0


def choose_provider(
    name: str | None = None,
    *,
    confirmed: bool = False,
    report: Report = print,
    run: Run = run_command,
    environment: Mapping[str, str] = os.environ,
) -> Cluster:
    """The provider called `name`, else what NOCTAYA_E2E_CLUSTER names, else kind or host by what is here.

    Args:
        name: `kind`, `host` or `existing`.
        confirmed: for `existing`, that its cluster may be used.
        report: gets a line of progress now and then.
        run: runs commands.
        environment: for NOCTAYA_E2E_CLUSTER, NOCTAYA_CLUSTER_STATE and KUBECONFIG.

    Raises:
        ClusterError: no such provider, or none can work here; the message says what each lacks.
    """
    chosen = name or environment.get(ENVIRONMENT) or detect(run)
    folder = default_state().parent
    match chosen:
        case "kind":
            kubectl, helm = _program("kubectl", report), _program("helm", report)
            return KindCluster(
                folder / "kind", kubectl=kubectl, helm=helm, report=report, run=run, environment=environment
            )
        case "host":
            state = environment.get(STATE)
            return HostCluster(Path(state) if state else None, report=report)
        case "existing":
            return ExistingCluster(
                folder / "existing",
                confirmed=confirmed,
                kubectl=_program("kubectl", report),
                report=report,
                run=run,
                environment=environment,
            )
        case other:
            raise ClusterError(f"there is no provider {other!r}; there are {', '.join(PROVIDERS)}")


def detect(run: Run = run_command, *, rights: Callable[[], list[str]] = missing_rights) -> str:
    """`kind` or `host`. Raises ClusterError saying what each of them lacks here."""
    kind = missing_for_kind(run)
    if not kind:
        return "kind"
    host = rights()
    if not host:
        return "host"
    raise ClusterError(
        f"no cluster can be made here. kind lacks {' and '.join(kind)}; host lacks {' and '.join(host)}; "
        f"or name a cluster of your own: --cluster existing {FLAG}"
    )


def missing_for_kind(run: Run = run_command) -> list[str]:
    """What kind would need and is not here."""
    lacks = []
    for what, argv in (
        ("kind (https://kind.sigs.k8s.io)", ["kind", "version"]),
        ("a Docker that answers", ["docker", "info", "--format", "{{.ServerVersion}}"]),
    ):
        try:
            done = run(argv, timeout=SECONDS)
        except ClusterError:
            lacks.append(what)
            continue
        if done.returncode != 0 or not done.stdout.strip():
            lacks.append(what)
    return lacks


def _program(name: str, report: Report) -> Path:
    """The one on PATH, else one that is built."""
    found = shutil.which(name)
    return Path(found) if found else ensure(name, report=report)[name]
