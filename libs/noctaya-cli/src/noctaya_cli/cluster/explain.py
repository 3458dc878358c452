"""`noctaya explain SERVICE`: the last cold starts as a picture, what is wrong now, what to do about it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from noctaya_api import names
from noctaya_api.activation_timeline import phases

from noctaya_cli.cluster.absent import absent
from noctaya_cli.cluster.access import ClusterError, NotThere, Object, Reader, core_path, service_path
from noctaya_cli.cluster.causes import causes_of
from noctaya_cli.cluster.demand import (
    GatewayNumbers,
    ProxyForbidden,
    gateway_pods,
    read_demand,
    service_of,
    streams_of,
)
from noctaya_cli.cluster.former_starts import draw_former_svg, draw_former_text, formers_of
from noctaya_cli.cluster.gateway_trouble import with_trouble
from noctaya_cli.cluster.remedies import remedy
from noctaya_cli.cluster.service_view import ServiceView, view_of
from noctaya_cli.cluster.waterfall import Waterfall, age, draw_svg, draw_text, waterfall_of

EVENTS_SHOWN: Final = 6
"""Recent Events of the service; older ones repeat what the status says."""


@dataclass(frozen=True, kw_only=True)
class Happening:
    """One Event about the service."""

    at: str
    reason: str
    note: str
    warning: bool


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Everything `explain` shows."""

    service: ServiceView
    numbers: GatewayNumbers | None
    picture: Waterfall | None
    former: tuple[tuple[str, Waterfall], ...]
    """Age and picture of the cold starts before the last one."""
    events: tuple[Happening, ...]
    remarks: tuple[str, ...]
    now: datetime


def explain(cluster: Reader, namespace: str, name: str, *, now: datetime) -> Explanation:
    """Read what there is to say about a service.

    Raises:
        ClusterError: the service doesn't exist or can't be read.
    """
    try:
        raw = cluster.get(service_path(namespace, name))
    except NotThere as error:
        raise absent(cluster, namespace, name) from error
    service = view_of(raw)
    remarks: list[str] = []
    numbers = None
    try:
        pods = [pod for pod in gateway_pods(cluster, namespace) if service_of(pod) == name]
        numbers = read_demand(cluster, pods).get((namespace, name))
        if numbers is None:
            remarks.append("no gateway of this service answers: clients can't reach it either")
        else:
            service = with_trouble(service, numbers, streams_of(cluster, namespace, name, numbers))
    except ProxyForbidden:
        remarks.append("demand is not shown: that takes the right to get pods/proxy")
    except ClusterError as error:
        remarks.append(f"demand is not shown: {error}")
    try:
        known = {each.reason for each in service.problems}
        causes = [each for each in causes_of(cluster, raw, now=now) if each.reason not in known]
        service = replace(service, problems=(*causes, *service.problems))
    except ClusterError as error:
        remarks.append(f"its certificate was not looked at: {error}")
    events: tuple[Happening, ...] = ()
    try:
        events = _events(cluster, namespace, raw)
    except ClusterError as error:
        remarks.append(f"Events are not shown: {error}")
    picture = (
        waterfall_of(service.activation, service=f"{namespace}/{name}", now=now)
        if service.activation
        else None
    )
    return Explanation(
        service=service,
        numbers=numbers,
        picture=picture,
        former=formers_of(service.former, service=f"{namespace}/{name}", now=now),
        events=events,
        remarks=tuple(remarks),
        now=now,
    )


def draw_explanation(found: Explanation, *, width: int) -> Iterator[str]:
    """The page."""
    service, numbers = found.service, found.numbers
    replicas = f"{service.ready} of at most {service.maximum} ready"
    yield f"{service.namespace}/{service.name}: {service.phase}, {replicas}"
    yield f"  model    {service.model}"
    yield f"  runtime  {service.runtime}"
    if numbers is not None:
        yield f"  demand   {demand_line(numbers)}"
    if (kept := service.kept(found.now)) != "-":
        yield f"  kept     {kept}"
    if service.prewarm:
        yield f"  weights  {weights_line(service)}"
    if service.stale:
        yield "  the operator has not looked at the newest spec yet"
    yield ""
    yield from _problems(found, width=width)
    yield ""
    if found.picture is None:
        yield "No cold start is on record."
    else:
        yield from draw_text(found.picture, width=width)
    if found.former:
        yield ""
        yield from draw_former_text(found.former, width=width)
    if found.events:
        yield ""
        yield "Recently:"
        for each in found.events:
            line = f"  {_age_of(each.at, found.now):>5} ago  {each.reason}: {' '.join(each.note.split())}"
            yield line if len(line) <= width else line[: width - 1] + "…"
    for remark in found.remarks:
        yield from textwrap.wrap(f"({remark})", width=max(width, 20))


def json_of(found: Explanation) -> dict[str, Any]:
    """The same for programs."""
    record, numbers = found.service.activation, found.numbers
    return {
        "namespace": found.service.namespace,
        "name": found.service.name,
        "phase": found.service.phase,
        "model": found.service.model,
        "runtime": found.service.runtime,
        "replicas": {"ready": found.service.ready, "max": found.service.maximum},
        "demand": numbers.demand if numbers else None,
        "queue": numbers.held if numbers else None,
        "prewarm": dict(found.service.prewarm) or None,
        "problems": [
            {
                "condition": each.condition,
                "reason": each.reason,
                "message": each.message,
                "meaning": advice.meaning if (advice := remedy(each.reason)) else None,
                "remedy": advice.action if advice else None,
            }
            for each in found.service.problems
        ],
        "keep": dict(found.service.keep) or None,
        "lastActivation": record.manifest() if record else None,
        "phases": dict(phases(record)) if record else {},
        "recentActivations": [
            {**each.manifest(), "phases": dict(phases(each))} for each in found.service.former
        ],
        "events": [{"at": e.at, "reason": e.reason, "note": e.note} for e in found.events],
        "remarks": list(found.remarks),
    }


def svg_of(found: Explanation) -> str | None:
    """The cold starts as an SVG file; None when none is on record."""
    if found.picture is None:
        return None
    return draw_svg(
        found.picture, below=lambda top: draw_former_svg(found.former, top=top), rows=len(found.former)
    )


def demand_line(numbers: GatewayNumbers) -> str:
    """Demand and what it is made of."""
    at = f"at {numbers.gateways} gateway{'s' if numbers.gateways != 1 else ''}"
    parts = [f"{numbers.held} held", f"{max(0, numbers.pending - numbers.held)} running"]
    if numbers.demand > numbers.pending:
        parts.append("the rest for clients that may come back")
    return f"{numbers.demand} {at}" + (f" ({', '.join(parts)})" if numbers.demand or numbers.pending else "")


def weights_line(service: ServiceView) -> str:
    """State of the download in a line."""
    prewarm = service.prewarm
    parts = [str(prewarm.get("state") or "unknown")]
    done, total, rate = (prewarm.get(key) for key in ("bytesDone", "bytesTotal", "bytesPerSecond"))
    if isinstance(done, int):
        parts.append(_size(done) + (f" of {_size(total)}" if isinstance(total, int) else ""))
    if isinstance(rate, int) and rate > 0:
        parts.append(f"{_size(rate)}/s")
    if prewarm.get("message"):
        parts.append(" ".join(str(prewarm["message"]).split()))
    return ", ".join(parts)


def _problems(found: Explanation, *, width: int) -> Iterator[str]:
    if not found.service.problems:
        yield "Nothing is wrong."
        return
    for each in found.service.problems:
        since = f", for {_age_of(each.since, found.now)}" if each.since else ""
        yield f"✖ {each.reason} ({each.condition}{since})"
        yield from _folded(each.message, width=width)
        if advice := remedy(each.reason):
            yield from _folded(advice.meaning, width=width)
            yield from _folded(f"→ {advice.action}".replace("SERVICE", found.service.name), width=width)


def _folded(text: str, *, width: int) -> list[str]:
    return textwrap.wrap(
        " ".join(text.split()),
        width=max(width, 20),
        initial_indent="  ",
        subsequent_indent="    " if text.startswith("→") else "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _events(cluster: Reader, namespace: str, service: Object) -> tuple[Happening, ...]:
    uid = str((service.get("metadata") or {}).get("uid") or "")
    fields = f"regarding.uid={uid},regarding.kind={names.LLMSERVICE_KIND}"
    raw = cluster.items(core_path("events", namespace, group="events.k8s.io/v1"), fields=fields)
    told = [
        Happening(
            at=_when(each),
            reason=str(each.get("reason") or ""),
            note=str(each.get("note") or ""),
            warning=each.get("type") == "Warning",
        )
        for each in raw
    ]
    told.sort(key=lambda each: each.at, reverse=True)
    return tuple(told[:EVENTS_SHOWN])


def _when(event: Object) -> str:
    series = event.get("series") or {}
    return str(
        series.get("lastObservedTime") or event.get("eventTime") or event.get("deprecatedLastTimestamp") or ""
    )


def _age_of(moment: str, now: datetime) -> str:
    try:
        return age((now - datetime.fromisoformat(moment)).total_seconds())
    except (ValueError, TypeError):  # no time, or one without a zone
        return "?"


def _size(count: int) -> str:
    amount = float(min(count, 1 << 63))
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"
