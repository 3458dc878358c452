"""How each image is started to be judged: settings it serves with, where it answers, what it must refuse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

FILES: Final = "/trial"
"""Where the files of a trial are mounted, read-only."""
MODELS: Final = "/models"
"""Where weights are mounted for images that `needs_weights`."""

_NO_CLUSTER: Final = """\
apiVersion: v1
kind: Config
current-context: trial
contexts: [{name: trial, context: {cluster: trial, user: trial}}]
clusters: [{name: trial, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: trial, user: {token: trial}}]
"""


@dataclass(frozen=True)
class Refusal:
    """A setting that can't be used: what is given, what the message must name, the exit code."""

    names: str
    code: int
    env: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trial:
    """One image under trial.

    Attributes:
        image: name in the catalog.
        distribution: the Python distribution it is there for.
        refusal: what it must not start with.
        env: settings it serves with.
        arguments: after the entry point.
        files: content by name, mounted at `FILES`.
        port: where it answers on loopback.
        health: path that answers 200 once it serves.
        exit_code: after SIGTERM.
        shell: whether it has /bin/sh, for drain hooks.
        needs_weights: whether it serves a real model.
        writable: a folder it needs to write to.
    """

    image: str
    distribution: str
    refusal: Refusal
    env: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    port: int = 8080
    health: str = "/healthz"
    exit_code: int = 0
    shell: bool = False
    needs_weights: bool = False
    writable: str | None = None


TRIALS: Final = (
    Trial(
        image="operator",
        distribution="noctaya-operator",
        arguments=("--kubeconfig", f"{FILES}/kubeconfig"),
        files={"kubeconfig": _NO_CLUSTER},
        port=8081,
        refusal=Refusal(names="gateway-replicas", code=1, arguments=("--gateway-replicas=0",)),
    ),
    Trial(
        image="gateway",
        distribution="noctaya-gateway",
        env={"NOCTAYA_BACKEND_URL": "http://127.0.0.1:9", "NOCTAYA_LAME_DUCK": "0s"},
        refusal=Refusal(
            names="NOCTAYA_MAX_QUEUE",
            code=1,
            env={"NOCTAYA_BACKEND_URL": "http://127.0.0.1:9", "NOCTAYA_MAX_QUEUE": "many"},
        ),
    ),
    Trial(
        image="aggregate-scaler",
        distribution="noctaya-aggregate-scaler",
        env={"NOCTAYA_DEMAND_AUTH_TOKEN_FILE": f"{FILES}/token"},
        files={"token": "trial-token-of-more-than-32-characters\n"},
        port=9091,
        refusal=Refusal(names="NOCTAYA_DEMAND_AUTH_TOKEN_FILE", code=1),
    ),
    Trial(
        image="prewarm-agent",
        distribution="noctaya-prewarm",
        arguments=("download", "--source", "hf://org/model", "--target", "/cache/models/trial"),
        writable="/cache",
        exit_code=1,
        refusal=Refusal(
            names="NOCTAYA_PREWARM_DEADLINE",
            code=2,
            env={"NOCTAYA_PREWARM_DEADLINE": "soon"},
            arguments=("wait", "--marker", "/cache/marker"),
        ),
    ),
    Trial(
        image="model-stub",
        distribution="noctaya-model-stub",
        port=8000,
        health="/health",
        shell=True,
        refusal=Refusal(names="STUB_TOKEN_DELAY", code=2, env={"STUB_TOKEN_DELAY": "soon"}),
    ),
    Trial(
        image="model-hub",
        distribution="noctaya-model-hub",
        health="/_hub/healthz",
        refusal=Refusal(names="/nowhere", code=1, arguments=("--folder", "/nowhere")),
    ),
    Trial(
        image="llamacpp-server",
        distribution="noctaya-llamacpp",
        arguments=("--model", MODELS),
        port=8000,
        health="/health",
        shell=True,
        needs_weights=True,
        refusal=Refusal(names="--model", code=2, arguments=("--model", "/nowhere")),
    ),
)
