"""A Grafana dashboard from a short description: rows of panels, each a title and its queries. Pure.

Grafana's own JSON is long and mostly default; what a person decides fits into a line a panel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

COLUMNS: Final = 24
DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True, kw_only=True)
class Query:
    """One PromQL expression and how its series are named; with `exemplars` Grafana shows those of buckets."""

    expr: str
    legend: str = ""
    instant: bool = False
    exemplars: bool = False

    def of(self, *, namespace: str, service: str) -> str:
        """The expression with the variables of a dashboard as Grafana puts them in."""
        return self.expr.replace("$namespace", namespace).replace("$service", service)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One picture."""

    title: str
    queries: tuple[Query, ...]
    kind: str = "timeseries"
    unit: str = "short"
    width: int = 8
    height: int = 8
    stacked: bool = False
    description: str = ""


@dataclass(frozen=True, kw_only=True)
class Variable:
    """A choice at the top of the dashboard, from the values of a label."""

    name: str
    query: str
    label: str = ""


@dataclass(frozen=True, kw_only=True)
class Dashboard:
    """A page of panels."""

    uid: str
    title: str
    description: str
    panels: tuple[Panel, ...]
    variables: tuple[Variable, ...] = field(default=())

    def render(self) -> dict[str, Any]:
        """As Grafana imports it."""
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.description,
            "tags": ["noctaya"],
            "timezone": "browser",
            "schemaVersion": 39,
            "version": 1,
            "editable": True,
            "refresh": "10s",
            "time": {"from": "now-1h", "to": "now"},
            "templating": {"list": [_datasource(), *(_variable(each) for each in self.variables)]},
            "panels": _placed(self.panels),
        }

    def queries(self) -> list[tuple[str, Query]]:
        """Every query with the title of its panel."""
        return [(panel.title, query) for panel in self.panels for query in panel.queries]


def _placed(panels: Sequence[Panel]) -> list[dict[str, Any]]:
    placed, x, y, tallest = [], 0, 0, 0
    for number, panel in enumerate(panels, start=1):
        if x + panel.width > COLUMNS:
            x, y, tallest = 0, y + tallest, 0
        placed.append(_panel(panel, number=number, x=x, y=y))
        x, tallest = x + panel.width, max(tallest, panel.height)
    return placed


def _panel(panel: Panel, *, number: int, x: int, y: int) -> dict[str, Any]:
    custom = {
        "fillOpacity": 25 if panel.stacked else 10,
        "stacking": {"mode": "normal" if panel.stacked else "none"},
    }
    rendered: dict[str, Any] = {
        "id": number,
        "title": panel.title,
        "type": panel.kind,
        "datasource": DATASOURCE,
        "gridPos": {"x": x, "y": y, "w": panel.width, "h": panel.height},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, "custom": custom}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": DATASOURCE,
                "expr": query.expr,
                "legendFormat": query.legend or "__auto",
                "instant": query.instant,
                "range": not query.instant,
                **({"exemplar": True} if query.exemplars else {}),
            }
            for index, query in enumerate(panel.queries)
        ],
    }
    if panel.description:
        rendered["description"] = panel.description
    if panel.kind == "timeseries":
        rendered["options"] = {
            "legend": {"displayMode": "list", "placement": "bottom"},
            "tooltip": {"mode": "multi"},
        }
    return rendered


def _datasource() -> dict[str, Any]:
    return {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}


def _variable(variable: Variable) -> dict[str, Any]:
    return {
        "name": variable.name,
        "label": variable.label or variable.name,
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": variable.query, "refId": variable.name},
        "refresh": 2,
        "sort": 1,
        "includeAll": False,
        "multi": False,
    }
