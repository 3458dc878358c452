"""The diagrams of the documentation, by the names of their files in docs/pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from noctaya_docs.diagrams import Arrow, Box, Boxes, Said, Sequence
from noctaya_docs.pages import REPOSITORY

FOLDER: Final = REPOSITORY / "docs" / "pictures"

PARTS: Final = Boxes(
    title="The parts of Noctaya and what goes between them",
    width=900,
    height=330,
    boxes={
        "client": Box("client", "OpenAI SDK, curl", 15, 145, 125, 56),
        "ours": Box("Noctaya", "", 185, 20, 445, 295, group=True),
        "gateway": Box("gateway, 1 to G", "admission · holding\nproxying", 205, 135, 160, 76),
        "aggregate": Box("aggregate scaler", "when G > 1", 445, 48, 160, 56),
        "operator": Box("operator", "LLMService → objects,\nstatus", 445, 230, 160, 72),
        "keda": Box("KEDA", "replicas 0 to N", 735, 48, 150, 56),
        "model": Box("model server Pods", "vLLM, SGLang,\nllama.cpp …", 735, 137, 150, 72),
    },
    arrows=(
        Arrow("client", "gateway", "HTTP"),
        Arrow("gateway", "aggregate", "demand 9091", along=0.55),
        Arrow("keda", "aggregate", "gRPC 9090"),
        Arrow("keda", "gateway", "9090 when G = 1", dashed=True, along=0.42),
        Arrow("keda", "model", ""),
        Arrow("gateway", "model", "HTTP", along=0.8),
        Arrow("operator", "gateway", "makes"),
        Arrow("operator", "model", "makes"),
    ),
)

COLD_REQUEST: Final = Sequence(
    title="A request that finds nothing running",
    lanes=("client", "gateway", "KEDA", "model server"),
    said=(
        Said(0, 1, "POST /v1/chat/completions"),
        Said(1, 1, "key, then the whole body, then a slot"),
        Said(1, 2, "StreamIsActive: true", dashed=True),
        Said(2, 3, "replicas 0 → 1"),
        Said(1, 0, "heartbeats, as comments", dashed=True),
        Said(1, 3, "probed every 50 ms while an activation is pending", dashed=True),
        Said(3, 1, "ready", dashed=True),
        Said(1, 3, "the request, byte for byte"),
        Said(3, 1, "tokens"),
        Said(1, 0, "tokens"),
        Said(1, 1, "lease ends; 15 s later demand is the requests"),
        Said(2, 3, "idle long enough: 1 → 0"),
    ),
)

WEIGHTS: Final = Boxes(
    title="How weights arrive",
    width=900,
    height=215,
    boxes={
        "source": Box("model.source", "hf, modelscope, s3, oci", 15, 35, 170, 56),
        "job": Box("download Job", "revision → ranges → verify\n→ rename → marker", 265, 27, 220, 72),
        "cache": Box("cache", "complete with its marker", 570, 35, 170, 56),
        "pod": Box("model server", "", 780, 39, 105, 48),
        "status": Box("status.prewarm", "bytes, rate, reason", 300, 145, 150, 54),
        "keda": Box("KEDA", "held at 0 until the marker is there", 560, 145, 260, 54),
    },
    arrows=(
        Arrow("source", "job"),
        Arrow("job", "cache"),
        Arrow("cache", "pod"),
        Arrow("job", "status", "progress"),
        Arrow("job", "keda", "done", dashed=True),
    ),
)

TRUST: Final = Boxes(
    title="Where trust ends",
    width=900,
    height=330,
    boxes={
        "client": Box("client", "", 15, 40, 110, 48),
        "gateway": Box("gateway", "keys, held bodies", 300, 36, 150, 56),
        "engine": Box("model server", "weights, bodies", 640, 36, 150, 56),
        "aggregate": Box("aggregate scaler", "report token", 300, 145, 150, 56),
        "keda": Box("KEDA", "", 640, 149, 150, 48),
        "people": Box("who writes objects", "", 15, 265, 160, 48),
        "api": Box("API server", "", 300, 265, 150, 48),
        "operator": Box("operator", "ServiceAccount", 500, 261, 120, 56),
        "agent": Box("prewarm agent", "one service's token", 650, 261, 125, 56),
        "hub": Box("hub", "", 820, 265, 65, 48),
    },
    arrows=(
        Arrow("client", "gateway", "1  HTTP 8080, key"),
        Arrow("gateway", "engine", "2  HTTP"),
        Arrow("gateway", "aggregate", "3  HTTP 9091, token"),
        Arrow("keda", "aggregate", "4  gRPC 9090, mTLS"),
        Arrow("operator", "api", "5"),
        Arrow("people", "api", "6, 7"),
        Arrow("agent", "hub", "8"),
    ),
)

PICTURES: Final[dict[str, Boxes | Sequence]] = {
    "parts": PARTS,
    "cold-request": COLD_REQUEST,
    "weights": WEIGHTS,
    "trust": TRUST,
}


def write(folder: Path = FOLDER) -> None:
    """Draw every picture."""
    for name, picture in PICTURES.items():
        (folder / f"{name}.svg").write_text(picture.draw(), encoding="utf-8")


def stale(folder: Path = FOLDER) -> list[str]:
    """Files that are not what is written here."""
    files = {folder / f"{name}.svg": picture.draw() for name, picture in PICTURES.items()}
    return [
        file.name for file, drawn in files.items() if not file.is_file() or file.read_text("utf-8") != drawn
    ]
