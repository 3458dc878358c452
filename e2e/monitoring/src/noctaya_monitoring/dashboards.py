"""The two dashboards: a fleet on one page, and one service with its cold starts phase by phase."""

from __future__ import annotations

from typing import Final

from noctaya_monitoring.dashboard import Dashboard, Panel, Query, Variable

BY_SERVICE: Final = "namespace, llmservice"
ONE: Final = 'namespace="$namespace",llmservice="$service"'


def _sum(metric: str, *, by: str = BY_SERVICE, where: str = "") -> str:
    return f"sum by ({by}) ({metric}{{{where}}})" if where else f"sum by ({by}) ({metric})"


def _quantile(share: float, metric: str, *, by: str, where: str = "", window: str = "15m") -> str:
    return f"histogram_quantile({share}, sum by ({by}, le) (rate({metric}_bucket{{{where}}}[{window}])))"


def _gained(counter: str, *, by: str, where: str = "", window: str = "1h") -> str:
    """What a counter has gained. One that appeared within the window began at 0: increase() would leave out
    what it appeared with, which is the first cold start of a service. Scrapes that failed don't matter."""
    series = f"{counter}{{{where}}}" if where else counter
    before = f"present_over_time({series}[{window}] offset {window})"
    new = f"(max_over_time({series}[{window}]) unless {before})"
    return f"sum by ({by}) ({new} or increase({series}[{window}]))"


def _mean(histogram: str, *, by: str, where: str, window: str = "1h") -> str:
    total, count = (
        _gained(f"{histogram}_{part}", by=by, where=where, window=window) for part in ("sum", "count")
    )
    return f"{total} / {count}"


NAME: Final = "{{namespace}}/{{llmservice}}"

FLEET: Final = Dashboard(
    uid="noctaya-overview",
    title="Noctaya: fleet",
    description="Every service of the cluster: demand, cold starts, refusals; and the operator.",
    panels=(
        Panel(
            title="Services by phase",
            kind="bargauge",
            width=6,
            queries=(
                Query(expr="sum by (phase) (noctaya_operator_services)", legend="{{phase}}", instant=True),
            ),
        ),
        Panel(
            title="Demand",
            width=9,
            description="What KEDA scales by: requests held and in flight, or 1 during an activation lease.",
            queries=(Query(expr=_sum("noctaya_gateway_demand"), legend=NAME),),
        ),
        Panel(
            title="Held requests",
            width=9,
            description="Cold requests that wait for a model.",
            queries=(Query(expr=_sum("noctaya_gateway_held"), legend=NAME),),
        ),
        Panel(
            title="Cold starts an hour",
            queries=(
                Query(
                    expr=_gained("noctaya_operator_activations_total", by=f"{BY_SERVICE}, outcome"),
                    legend=NAME + " {{outcome}}",
                ),
            ),
        ),
        Panel(
            title="Time of cold starts, mean of an hour",
            unit="s",
            queries=(
                Query(
                    expr=_mean("noctaya_activation_phase_seconds", by=BY_SERVICE, where='phase="total"'),
                    legend=NAME,
                ),
            ),
        ),
        Panel(
            title="Wait of cold requests, 95th percentile",
            unit="s",
            queries=(
                Query(
                    expr=_quantile(0.95, "noctaya_gateway_activation_wait_seconds", by=BY_SERVICE),
                    legend=NAME,
                ),
            ),
        ),
        Panel(
            title="Requests a second",
            unit="reqps",
            stacked=True,
            queries=(
                Query(expr=f"sum by ({BY_SERVICE}) (rate(noctaya_gateway_requests_total[1m]))", legend=NAME),
            ),
        ),
        Panel(
            title="Refused requests a second",
            unit="reqps",
            stacked=True,
            queries=(
                Query(
                    expr=f"sum by ({BY_SERVICE}, reason) (rate(noctaya_gateway_rejections_total[1m]))",
                    legend=NAME + " {{reason}}",
                ),
            ),
        ),
        Panel(
            title="KEDA's streams",
            description="0 means that cold requests wait for KEDA's next poll.",
            queries=(Query(expr=_sum("noctaya_gateway_scaler_streams"), legend=NAME),),
        ),
        Panel(
            title="Downloads",
            kind="bargauge",
            unit="percentunit",
            description="Share of the model's bytes that are there.",
            queries=(
                Query(
                    expr="noctaya_operator_prewarm_bytes_done / noctaya_operator_prewarm_bytes_total",
                    legend=NAME,
                    instant=True,
                ),
            ),
        ),
        Panel(
            title="Reconciles a second",
            unit="ops",
            queries=(
                Query(
                    expr="sum by (controller, result) (rate(controller_runtime_reconcile_total[5m]))",
                    legend="{{controller}} {{result}}",
                ),
            ),
        ),
        Panel(
            title="Writes of the operator a second",
            unit="ops",
            description="Zero in steady state.",
            queries=(
                Query(
                    expr="sum by (resource, verb) (rate(noctaya_operator_writes_total[5m]))",
                    legend="{{verb}} {{resource}}",
                ),
            ),
        ),
    ),
)

SERVICE: Final = Dashboard(
    uid="noctaya-service",
    title="Noctaya: one service",
    description="One service: where its cold starts spend their time, what its clients see.",
    variables=(
        Variable(name="namespace", query="label_values(noctaya_gateway_demand, namespace)"),
        Variable(
            name="service", query='label_values(noctaya_gateway_demand{namespace="$namespace"}, llmservice)'
        ),
    ),
    panels=(
        Panel(
            title="Cold starts by phase, mean of an hour",
            unit="s",
            width=12,
            stacked=True,
            queries=(
                Query(
                    expr=_mean("noctaya_activation_phase_seconds", by="phase", where=f'{ONE},phase!="total"'),
                    legend="{{phase}}",
                ),
            ),
        ),
        Panel(
            title="Time of cold starts",
            kind="heatmap",
            width=12,
            unit="s",
            queries=(
                Query(
                    expr=_gained(
                        "noctaya_activation_phase_seconds_bucket", by="le", where=f'{ONE},phase="total"'
                    ),
                    legend="{{le}}",
                ),
            ),
        ),
        Panel(
            title="Demand and requests",
            queries=(
                Query(expr=f"sum(noctaya_gateway_demand{{{ONE}}})", legend="demand"),
                Query(expr=f"sum(noctaya_gateway_held{{{ONE}}})", legend="held"),
                Query(expr=f"sum(noctaya_gateway_pending{{{ONE}}})", legend="admitted"),
            ),
        ),
        Panel(
            title="Backends",
            queries=(Query(expr=f"max by (state) (noctaya_gateway_backends{{{ONE}}})", legend="{{state}}"),),
        ),
        Panel(
            title="Wait of cold requests",
            unit="s",
            queries=tuple(
                Query(
                    expr=_quantile(
                        share, "noctaya_gateway_activation_wait_seconds", by="llmservice", where=ONE
                    ),
                    legend=name,
                    exemplars=True,
                )
                for share, name in ((0.5, "median"), (0.95, "95th percentile"))
            ),
        ),
        Panel(
            title="Answers a second",
            unit="reqps",
            stacked=True,
            queries=(
                Query(
                    expr=f"sum by (code) (rate(noctaya_gateway_requests_total{{{ONE}}}[1m]))",
                    legend="{{code}}",
                ),
            ),
        ),
        Panel(
            title="Refusals a second",
            unit="reqps",
            queries=(
                Query(
                    expr=f"sum by (reason) (rate(noctaya_gateway_rejections_total{{{ONE}}}[1m]))",
                    legend="{{reason}}",
                ),
            ),
        ),
        Panel(
            title="Trouble a second",
            unit="ops",
            description="Failures of the backend, clients that left, control connections made anew.",
            queries=(
                Query(
                    expr=f"sum by (kind) (rate(noctaya_gateway_upstream_errors_total{{{ONE}}}[1m]))",
                    legend="upstream {{kind}}",
                ),
                Query(
                    expr=f"sum by (phase) (rate(noctaya_gateway_client_disconnects_total{{{ONE}}}[1m]))",
                    legend="client left: {{phase}}",
                ),
                Query(
                    expr=f"sum by (kind) (rate(noctaya_gateway_control_reconnects_total{{{ONE}}}[1m]))",
                    legend="reconnect {{kind}}",
                ),
            ),
        ),
        Panel(
            title="Requests by key a second",
            unit="reqps",
            width=12,
            description="Only where clients have keys. What a key may not was refused with 429.",
            queries=(
                Query(
                    expr=f"sum by (key, result) (rate(noctaya_gateway_key_requests_total{{{ONE}}}[1m]))",
                    legend="{{key}} {{result}}",
                ),
            ),
        ),
        Panel(
            title="Cold starts an hour, as gateways saw them",
            width=12,
            description="Expired and failed ones are answers to clients that waited in vain.",
            queries=(
                Query(
                    expr=_gained("noctaya_gateway_activations_total", by="result", where=ONE),
                    legend="{{result}}",
                ),
            ),
        ),
    ),
)

ALL: Final = (FLEET, SERVICE)
