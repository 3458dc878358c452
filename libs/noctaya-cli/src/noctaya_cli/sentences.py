"""Events as short sentences for people. Pure."""

from noctaya_cli.events import Event, EventKind
from noctaya_cli.timeline import Activation

SENTENCES = {
    EventKind.SCALER_LOST: "the gateway's scaler does not answer: {reason}",
    EventKind.SERVICE_STARTED: "serving {model} at {url}",
    EventKind.SERVICE_STOPPED: "stopped",
    EventKind.NOTE: "note: {text}",
    EventKind.GATEWAY_EXITED: "gateway ended ({reason}), starting it again",
    EventKind.ACTIVATED: "demand seen, waking the model",
    EventKind.SCALED: "replicas {from} -> {to}",
    EventKind.PROCESS_STARTED: "{replica}: process {pid} started on port {port}",
    EventKind.REPLICA_READY: "{replica}: ready",
    EventKind.REPLICA_UNREADY: "{replica}: not ready ({reason})",
    EventKind.REPLICA_DRAINING: "{replica}: draining, {seconds:g} s at most",
    EventKind.REPLICA_EXITED: "{replica}: ended ({reason}) after {ran_seconds:g} s",
    EventKind.REPLICA_BACKOFF: "{replica}: next start in {seconds:g} s",
    EventKind.REPLICA_GONE: "{replica}: gone",
    EventKind.ACTIVATION_DOOMED: "can't come up: {reason}",
    EventKind.PHASE: "{phase}",
}
"""Events that are not here matter to programs only."""


def describe(event: Event) -> str | None:
    """What happened, in a few words; None for events that only matter to programs."""
    sentence = SENTENCES.get(event.kind)
    return None if sentence is None else sentence.format(replica=event.replica, **event.details)


def describe_activation(activation: Activation) -> str:
    """A cold start in one line, each moment in seconds since the first."""
    steps = " → ".join(f"{mark} {since:.2f}" for mark, since in activation.steps())
    return f"cold start {activation.elapsed(0.0):.2f} s: {steps}"
