"""M6: progress as it is told, by a clock that the test moves."""

import json

import pytest
from noctaya_prewarm.errors import NoSpace
from noctaya_prewarm.metrics import ProgressCollector
from noctaya_prewarm.progress import Progress, State
from noctaya_prewarm.run import Run
from noctaya_prewarm.status_server import StatusApp
from noctaya_prewarm.termination import describe, encode
from prometheus_client import CollectorRegistry, generate_latest

from .kit import settings


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_rate_and_time_left_are_those_of_the_last_seconds() -> None:
    clock = Clock()
    progress = Progress(clock=clock)
    progress.plan(total=10_000, done=2_000)
    progress.enter(State.DOWNLOADING)
    assert progress.snapshot().etaSeconds is None
    for _ in range(20):
        clock.now += 1
        progress.add(100)
    now = progress.snapshot()
    assert (now.bytesDone, now.bytesPerSecond, now.etaSeconds) == (4_000, 100, 60)
    clock.now += 1000
    stalled = progress.snapshot()
    assert (stalled.bytesPerSecond, stalled.etaSeconds) == (0, None)


def test_what_was_there_already_is_no_rate() -> None:
    clock = Clock()
    progress = Progress(clock=clock)
    progress.enter(State.DOWNLOADING)
    progress.plan(total=1000, done=999)
    clock.now += 1
    assert progress.snapshot().bytesPerSecond == 0


def test_worthless_bytes_are_taken_back() -> None:
    progress = Progress()
    progress.plan(total=100)
    progress.add(60)
    progress.take_back(60)
    assert (progress.snapshot().bytesDone, progress.moved) == (0, 60)


def test_a_file_that_is_whole_is_not_the_current_one_while_another_waits_for_its_bytes() -> None:
    progress = Progress()
    progress.add(10, "weights")
    progress.add(1, "config")
    assert progress.snapshot().currentFile == "config"
    progress.finished("config")
    assert progress.snapshot().currentFile == "weights"
    progress.finished("weights")
    assert progress.snapshot().currentFile == "weights", "the last one, once all are whole"
    progress.at("tokenizer")
    assert progress.snapshot().currentFile == "tokenizer"


def test_every_state_is_a_metric() -> None:
    progress = Progress()
    progress.enter(State.VERIFYING)
    registry = CollectorRegistry()
    registry.register(ProgressCollector(progress))
    text = generate_latest(registry).decode()
    assert 'noctaya_prewarm_state{state="Verifying"} 1.0' in text
    assert text.count("noctaya_prewarm_state{") == len(State)
    assert "noctaya_prewarm_retries_total 0.0" in text


@pytest.mark.parametrize("message", ["x" * 10_000, "ü" * 10_000, '"\\\n' * 5_000, "short"])
def test_a_termination_message_is_whole_json_within_the_kubelets_limit(message: str) -> None:
    run = Run(settings())
    run.revision, run.digest = "r" * 64, "sha256:" + "d" * 64
    content = describe(run, NoSpace(message))
    text = encode(content)
    assert len(text) <= 4096
    found = json.loads(text)
    assert found["message"] in {message, found["message"]}
    assert message.startswith(found["message"].removesuffix("…"))
    assert (found["code"], found["reason"], found["digest"]) == (12, "NoSpace", run.digest)
    assert message == "short" or len(text) > 3000


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/healthz", 200), ("HEAD", "/progress", 200), ("POST", "/healthz", 405), ("GET", "/x", 404)],
)
async def test_the_status_server_knows_three_documents(method: str, path: str, status: int) -> None:
    sent: list[dict[str, object]] = []

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    app = StatusApp(Progress(), CollectorRegistry())
    await app({"method": method, "path": path}, None, send)  # type: ignore[arg-type]
    assert sent[0]["status"] == status
    assert (sent[1]["body"] == b"") is (method == "HEAD")
