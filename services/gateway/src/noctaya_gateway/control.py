"""Builds the control side from the settings: every part, and who hears of what.

The only place that knows all parts. Nothing here acts; `start` and `close` of what runs in the
background are called by `lifecycle`.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from noctaya_api.demand.signal import DemandSignal, DemandState
from noctaya_api.process.token_file import TokenFile

from noctaya_gateway.activation import Activation
from noctaya_gateway.admission import Admission
from noctaya_gateway.auth import Authenticator
from noctaya_gateway.balancer import Balancer
from noctaya_gateway.cors import Cors
from noctaya_gateway.delivery import SCALER_PATIENCE, Delivery
from noctaya_gateway.demand import DemandMeter, MeterSource
from noctaya_gateway.discovery import Discovery
from noctaya_gateway.errors import ActivationTimeout, GatewayError
from noctaya_gateway.failure_file import FailureFile
from noctaya_gateway.gate import Gate
from noctaya_gateway.limits import Limiter
from noctaya_gateway.metrics import GatewayMetrics
from noctaya_gateway.models import Models
from noctaya_gateway.pacing import Pacer
from noctaya_gateway.prewarming import PrewarmingFile
from noctaya_gateway.probe import HttpProbe
from noctaya_gateway.readiness import Prober
from noctaya_gateway.search_domains import machine_search_domains
from noctaya_gateway.settings import DEMAND_TOKEN_LENGTH, GatewaySettings
from noctaya_gateway.tracing import Tracing
from noctaya_gateway.waiting import WaitingLine

if TYPE_CHECKING:
    from noctaya_api.externalscaler.server import ScalerServer

    from noctaya_gateway.reporter import Reporter


@dataclass(frozen=True)
class Control:
    """The control side of one gateway; exactly one of `scaler` and `reporter` is there."""

    gate: Gate
    prober: Prober
    discovery: Discovery
    delivery: Delivery
    scaler: ScalerServer | None
    reporter: Reporter | None
    tls: ssl.SSLContext | None
    """For connections to an https backend; None for http."""


def build_control(settings: GatewaySettings, *, tracing: Tracing | None = None) -> Control:
    """Build the parts in the running loop; nothing is started."""
    loop = asyncio.get_running_loop()
    metrics = GatewayMetrics()
    balancer = Balancer()
    admission = Admission(settings.max_queue)
    prewarming = PrewarmingFile(settings.prewarming_file, timers=loop)
    activation = Activation(
        timers=loop,
        timeout=settings.activation_timeout,
        grace=settings.ready_grace,
        is_ready=lambda: balancer.ready,
        excused=lambda: prewarming.notice() is not None,
        called_off=lambda: prewarming.sleeps,
    )

    def timed_out(waited: float) -> GatewayError:
        if (notice := prewarming.notice()) is not None:
            return prewarming.refusal(notice, waited=waited)
        return ActivationTimeout(waited=waited, retry_seconds=activation.retry_after())

    meter = DemandMeter(admission=admission, activation=activation, signal=DemandSignal(), timers=loop)
    pacer = Pacer(settings.release_rate)
    balancer.subscribe(removed=pacer.forget)
    line = WaitingLine(
        timers=loop,
        balancer=balancer,
        pacer=pacer,
        timeout=settings.activation_timeout,
        heartbeat_interval=settings.heartbeat_interval,
        timeout_error=timed_out,
    )
    keys = settings.client_api_key_file
    limits = Limiter(loop.time)
    gate = Gate(
        timers=loop,
        auth=Authenticator(
            None if keys is None else TokenFile(keys, clock=loop.time),
            default=settings.key_limits,
            on_names=limits.keep,
        ),
        limits=limits,
        admission=admission,
        activation=activation,
        balancer=balancer,
        line=line,
        demand=meter,
        metrics=metrics,
        models=Models(settings.listed_models, created=int(time.time())),
        cors=Cors(settings.cors_origins),
        reject_cold=settings.coldstart_mode == "reject",
        heartbeats=settings.heartbeats,
        progress=settings.progress,
        prewarming=prewarming,
        tracing=tracing,
    )
    tls = ssl.create_default_context() if settings.backend_tls else None
    prober, discovery = _build_watchers(settings, gate, tls)
    delivery = Delivery(
        clock=loop.time,
        demand=lambda: meter.effective,
        channel="aggregate scaler" if settings.demand_aggregator_url else "KEDA",
        patience=0.0 if settings.demand_aggregator_url else SCALER_PATIENCE,
    )
    scaler, reporter = _build_channel(settings, gate, delivery)
    _export(gate, delivery, scaler)
    return Control(gate, prober, discovery, delivery, scaler, reporter, tls)


def _build_watchers(
    settings: GatewaySettings, gate: Gate, tls: ssl.SSLContext | None
) -> tuple[Prober, Discovery]:
    activation = gate.activation
    prober = Prober(
        balancer=gate.balancer,
        probe=HttpProbe(
            path=settings.health_path,
            host=urlsplit(settings.backend_url).netloc,
            timeout=settings.probe_timeout,
            tls=tls,
            server_hostname=settings.backend_address.host,
        ),
        interval=settings.probe_interval,
        fast_interval=settings.probe_fast_interval,
        rise=settings.probe_rise,
        fall=settings.probe_fall,
        is_urgent=lambda: activation.pending,
        on_reconnect=lambda: gate.metrics.reconnect("probe"),
    )
    discovery = Discovery(
        settings.endpoints,
        service=settings.backend_address,
        balancer=gate.balancer,
        on_change=prober.follow,
        is_urgent=lambda: activation.pending,
        search=machine_search_domains(),
    )
    activation.subscribe(begin=prober.wake)
    activation.subscribe(begin=discovery.wake)
    if settings.activation_failure_file is not None:
        failures = FailureFile(
            settings.activation_failure_file,
            timers=asyncio.get_running_loop(),
            on_failure=activation.doom,
        )
        activation.subscribe(begin=failures.begin, end=lambda outcome, why: failures.end())
    return prober, discovery


def _build_channel(
    settings: GatewaySettings, gate: Gate, delivery: Delivery
) -> tuple[ScalerServer | None, Reporter | None]:
    # Either side brings about 10 MB of libraries that the other has no use for.
    token = settings.demand_auth_token_file
    if settings.demand_aggregator_url and token is not None:
        from noctaya_gateway.reporter import Reporter  # noqa: PLC0415

        reporter = Reporter(
            url=settings.demand_aggregator_url,
            gateway_id=settings.gateway_id,
            token=TokenFile(token, min_length=DEMAND_TOKEN_LENGTH),
            meter=gate.demand,
            delivery=delivery,
            metrics=gate.metrics,
            timeline=gate.timeline,
        )
        return None, reporter
    from noctaya_api.externalscaler.server import ScalerServer, TlsFiles  # noqa: PLC0415

    def told(state: DemandState) -> None:
        delivery.told()
        if state.active:
            gate.timeline.told(gate.timeline.pending)

    cert, key, client_ca = (
        settings.scaler_tls_cert_file,
        settings.scaler_tls_key_file,
        settings.scaler_tls_client_ca_file,
    )
    scaler = ScalerServer(
        MeterSource(gate.demand),
        listen=settings.scaler_listen_addr,
        tls=TlsFiles(cert, key, client_ca) if cert and key and client_ca else None,
        on_streams=delivery.streams,
        on_told=told,
    )
    return scaler, None


def certificate_expiry(scaler: ScalerServer | None) -> dict[str, float]:
    """Seconds since 1970 at which the scaler's certificate ends; empty without one."""
    ends = scaler.certificate_expires() if scaler is not None else None
    return {"server": ends.timestamp()} if ends is not None else {}


def _export(gate: Gate, delivery: Delivery, scaler: ScalerServer | None) -> None:
    metrics, demand, balancer = gate.metrics, gate.demand, gate.balancer
    metrics.gauge("pending", "Admitted requests, held or in flight.", lambda: demand.pending)
    metrics.gauge("demand", "Effective demand, what KEDA sees.", lambda: demand.effective)
    metrics.gauge("held", "Requests waiting in line for a backend.", lambda: len(gate.line))
    metrics.gauge("scaler_streams", "Open KEDA streams.", lambda: 0 if scaler is None else scaler.streams)
    metrics.labelled_gauge(
        "scaler_certificate_expiry_timestamp_seconds",
        "End of validity of the certificate shown to KEDA.",
        "side",
        lambda: certificate_expiry(scaler),
    )
    metrics.gauge(
        "undelivered_demand_seconds",
        "Seconds there has been demand that the scaler was not told of; 0 when delivered.",
        lambda: delivery.undelivered_seconds,
    )
    metrics.labelled_gauge(
        "backends",
        "Backend addresses by state; the Service's own only while it stands in for all of them.",
        "state",
        lambda: {"ready": len(balancer.ready_addresses), "unready": balancer.unready},
    )
    metrics.labelled_gauge(
        "last_activation_timestamp_seconds",
        "Unix time of the moments of the current or last activation.",
        "moment",
        gate.timeline.moments,
    )
    metrics.families(gate.limits.collect)
    if gate.auth.enabled:
        metrics.gauge(
            "key_file_malformed",
            "1 while the key file holds something that can't be understood and the keys before stay good.",
            lambda: gate.auth.malformed,
        )
    metrics.counter("activation_events", "Times effective demand rose from 0.", lambda: demand.activations)
