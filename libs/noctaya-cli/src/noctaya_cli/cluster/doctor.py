"""`noctaya doctor`: is everything there that services need, and if not, what to do."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from noctaya_cli.cluster.access import ClusterError, Object, services_path
from noctaya_cli.cluster.certificate_checks import check_certificates
from noctaya_cli.cluster.finding import SIGN, Finding, Level, look
from noctaya_cli.cluster.fleet_checks import check_gateways, check_services, check_streams
from noctaya_cli.cluster.operator_checks import Reviewer, check_operator, check_rights
from noctaya_cli.cluster.platform_checks import (
    check_crds,
    check_dns,
    check_keda,
    check_kubernetes,
    check_storage,
)


def examine(cluster: Reviewer, *, now: datetime) -> Iterator[Finding]:
    """Every check, in the order in which causes come before effects.

    Raises:
        ClusterError: the cluster can't be reached at all.
    """
    yield from check_kubernetes(cluster)
    yield from look("crds", lambda: check_crds(cluster))
    yield from look("keda", lambda: check_keda(cluster))
    yield from look("dns", lambda: check_dns(cluster))
    yield from look("operator", lambda: check_operator(cluster, now=now))
    yield from look("rights", lambda: check_rights(cluster))
    try:
        services: list[Object] = cluster.items(services_path(None))
    except ClusterError as error:
        yield Finding(area="services", level=Level.UNKNOWN, what=f"could not look: {error}")
        return
    yield from look("storage", lambda: check_storage(cluster, services))
    yield from look("gateways", lambda: check_gateways(cluster, services))
    yield from look("demand", lambda: check_streams(cluster, services))
    yield from look("certificates", lambda: check_certificates(cluster, services, now=now))
    yield from look("services", lambda: check_services(services))


def draw_finding(finding: Finding, *, width: int) -> Iterator[str]:
    """Lines of one finding, its remedy below it."""
    head = f"{SIGN[finding.level]} {finding.area:<12} "
    yield from textwrap.wrap(
        finding.what,
        width=max(width, 30),
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )
    if finding.remedy:
        yield from textwrap.wrap(
            finding.remedy,
            width=max(width, 30),
            initial_indent=" " * len(head) + "→ ",
            subsequent_indent=" " * len(head) + "  ",
            break_long_words=False,
            break_on_hyphens=False,
        )


def summary(findings: Iterable[Finding]) -> str:
    """The last line."""
    counts = dict.fromkeys(Level, 0)
    for each in findings:
        counts[each.level] += 1
    if not counts[Level.PROBLEM] and not counts[Level.WARNING]:
        return f"nothing wrong was found{_unseen(counts[Level.UNKNOWN])}"
    parts = [
        f"{counts[level]} {level}{'s' if counts[level] != 1 else ''}"
        for level in (Level.PROBLEM, Level.WARNING)
    ]
    return ", ".join(parts) + _unseen(counts[Level.UNKNOWN])


def _unseen(count: int) -> str:
    """What a summary must not pass over; the usual reason is a right that is missing."""
    roles = "the roles noctaya-doctor and noctaya-observer may (examples/security/roles)"
    return f"; {count} could not be looked at: {roles}" if count else ""


def json_of(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """The same for programs."""
    return [
        {"area": each.area, "level": str(each.level), "what": each.what, "remedy": each.remedy or None}
        for each in findings
    ]
