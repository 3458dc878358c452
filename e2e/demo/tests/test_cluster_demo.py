"""The parts of `./dev demo --cluster` that can be wrong without a cluster."""

import hashlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest
from noctaya_cluster import ClusterError, Kubectl
from noctaya_demo.cluster.claim import RECEIVE, fill_claim, loader_object
from noctaya_demo.cluster.forward import Forward
from noctaya_demo.cluster.place import ClusterPlace
from noctaya_demo.cluster.release import DemoRelease
from noctaya_demo.cluster.watching import Watch, documents
from noctaya_demo.place import PlaceFailed
from noctaya_demo.quiet import quiet_signals
from noctaya_scenarios.release import Helm

STAND_IN = """
import json, pathlib, sys, time
words = [word for word in sys.argv[1:] if not word.startswith("--kubeconfig")]
told = pathlib.Path(__file__).with_suffix(".asked")
with told.open("a") as file:
    print(json.dumps(words), file=file)
answers = json.loads(pathlib.Path(__file__).with_suffix(".json").read_text())
for verb, answer in answers.items():
    if verb in words:
        sys.stdout.write(answer.get("out", ""))
        sys.stdout.flush()
        sys.stderr.write(answer.get("err", ""))
        if answer.get("stays"):
            time.sleep(60)
        sys.exit(answer.get("code", 0))
"""


class Program:
    """Stands in for kubectl or helm: answers by a part of its command line, remembers what it was asked."""

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / name
        self.path.write_text(f"#!{sys.executable}\n{STAND_IN}")
        self.path.chmod(0o755)
        self.answers()

    def answers(self, **by_verb: dict[str, object]) -> None:
        """What it says, by a word of its command line with `_` for `-`; nothing and success otherwise."""
        named = {verb.replace("_", "-"): answer for verb, answer in by_verb.items()}
        self.path.with_suffix(".json").write_text(json.dumps(named))

    @property
    def asked(self) -> list[str]:
        """Its command lines so far."""
        file = self.path.with_suffix(".asked")
        return [" ".join(json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.fixture
def kubectl(tmp_path: Path) -> Program:
    return Program(tmp_path, "kubectl")


@pytest.fixture
def helm(tmp_path: Path) -> Program:
    return Program(tmp_path, "helm")


def client(program: Program) -> Kubectl:
    return Kubectl(program.path, program.path.with_name("kubeconfig"))


def event(kind: str, name: str, *, spec: object = None, status: object = None) -> str:
    found = {"metadata": {"name": name}, "spec": spec or {}, "status": status or {}}
    return json.dumps({"type": kind, "object": found}, indent=4) + "\n"


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_documents_are_found_however_they_are_cut(size: int) -> None:
    wanted = [{"a": {"b": "}"}}, {"c": "ä}\n{"}, {}]
    data = "\n".join(json.dumps(each, indent=2, ensure_ascii=False) for each in wanted).encode()
    chunks = (data[at : at + size] for at in range(0, len(data), size))
    assert list(documents(chunks)) == wanted


RUNNING = {"containerStatuses": [{"name": "serving", "state": {"running": {}}}]}
READY = {**RUNNING, "conditions": [{"type": "Ready", "status": "True"}]}


@pytest.fixture
def place(kubectl: Program, tmp_path: Path) -> Iterator[ClusterPlace]:
    """A cluster in which a Pod starts, from the news of its watches."""
    pods = [
        event("ADDED", "chat-1"),
        event("MODIFIED", "chat-1", spec={"nodeName": "node-1"}),
        event("MODIFIED", "chat-1", spec={"nodeName": "node-1"}, status=RUNNING),
        event("MODIFIED", "chat-1", spec={"nodeName": "node-1"}, status=READY),
        event("DELETED", "chat-1", spec={"nodeName": "node-1"}, status=READY),
    ]
    scaled = [event("ADDED", "chat", spec={"replicas": 0}), event("MODIFIED", "chat", spec={"replicas": 1})]
    kubectl.answers(
        pods={"out": "".join(pods), "stays": True}, deployments={"out": "".join(scaled), "stays": True}
    )
    forward = Forward(client(kubectl), namespace="n", service="chat", folder=tmp_path)
    with ClusterPlace(client(kubectl), namespace="n", service="chat", forward=forward) as place:
        yield place


def test_the_moments_of_a_start_come_in_order(place: ClusterPlace) -> None:
    began = time.monotonic() - 60
    marks = place.marks(after=began)
    assert [name for name, _ in marks] == ["KEDA scaled", "scheduled", "started", "ready"]
    pods = [moment for _, moment in marks[1:]]
    assert began < min(pods)
    assert pods == sorted(pods)


def test_zero_is_when_a_pod_has_gone_and_none_is_left(place: ClusterPlace, kubectl: Program) -> None:
    before = time.monotonic() - 60
    place.marks(after=before)
    kubectl.answers(pods={"out": "pod/chat-2\n"})
    with pytest.raises(PlaceFailed, match="a model pod chat-2 still runs"):
        place.wait_for_zero(after=before, within=5)
    kubectl.answers()
    place.wait_for_zero(after=before, within=5)
    assert place.running() is None


def test_a_watch_that_breaks_says_so_in_kubectls_words(kubectl: Program) -> None:
    kubectl.answers(get={"err": "error: the server is gone\n", "code": 1})
    watch = Watch(client(kubectl), "pods")
    with pytest.raises(PlaceFailed, match="the watch of pods ended: error: the server is gone"):
        watch.first(lambda change: change, after=0.0, within=30)
    watch.stop()


def test_what_does_not_happen_is_told_in_time(kubectl: Program) -> None:
    kubectl.answers(get={"stays": True})
    watch = Watch(client(kubectl), "pods")
    with pytest.raises(PlaceFailed, match=r"did not happen within 0\.1 s"):
        watch.first(lambda change: change, after=0.0, within=0.1)
    watch.stop()


def test_the_endpoint_is_where_kubectl_says(kubectl: Program, tmp_path: Path) -> None:
    kubectl.answers(port_forward={"out": "Forwarding from 127.0.0.1:4711 -> 8080\n", "stays": True})
    with Forward(client(kubectl), namespace="n", service="chat", folder=tmp_path, port=4711) as forward:
        assert forward.address == "127.0.0.1:4711"
        assert forward.running
    assert not forward.running
    assert kubectl.asked == ["--namespace n port-forward service/chat 4711:80 --address=127.0.0.1"]


def test_a_way_that_cannot_be_had_is_told_in_kubectls_words(kubectl: Program, tmp_path: Path) -> None:
    kubectl.answers(port_forward={"err": "error: address already in use\n", "code": 1})
    with (
        pytest.raises(PlaceFailed, match="address already in use"),
        Forward(client(kubectl), namespace="n", service="chat", folder=tmp_path),
    ):
        pass


def receive(target: Path, data: bytes, *, wanted: bytes) -> subprocess.CompletedProcess[bytes]:
    argv = [sys.executable, "-c", RECEIVE, str(target), hashlib.sha256(wanted).hexdigest()]
    return subprocess.run(argv, input=data, capture_output=True, check=False)


def test_weights_appear_in_the_claim_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "claim" / "model" / "a.gguf"
    cut = receive(target, b"weig", wanted=b"weights")
    assert cut.returncode != 0
    assert b"SHA-256" in cut.stderr
    assert not target.exists()
    assert receive(target, b"weights", wanted=b"weights").returncode == 0
    assert target.read_bytes() == b"weights"
    assert [file.name for file in target.parent.iterdir()] == ["a.gguf"]


def test_the_claim_is_filled_through_a_pod_that_goes_again(kubectl: Program, tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(b"weights")
    fill(kubectl, tmp_path)
    verbs = [line.removeprefix("--namespace n ").split()[0] for line in kubectl.asked]
    assert verbs == ["apply", "wait", "exec", "delete"]
    assert "/models/model/a.gguf" in kubectl.asked[2]
    kubectl.answers(exec={"err": "no space left on device\n", "code": 1})
    with pytest.raises(ClusterError, match="no space left on device"):
        fill(kubectl, tmp_path)


def fill(kubectl: Program, folder: Path) -> None:
    fill_claim(
        client(kubectl),
        namespace="n",
        claim="models",
        size="1Gi",
        image="image:1",
        source=folder / "a.gguf",
        target=PurePosixPath("model/a.gguf"),
    )


def test_the_loader_is_a_restricted_pod() -> None:
    spec = loader_object("image:1", "models")["spec"]
    assert isinstance(spec, dict)
    assert spec["securityContext"]["runAsNonRoot"] is True
    (container,) = spec["containers"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


LISTED = json.dumps([{"chart": "noctaya-0.5.0"}])
CRDS = (
    "customresourcedefinition/llmservices.serving.noctaya.io\ncustomresourcedefinition/others.example.com\n"
)


def release(helm: Program, kubectl: Program) -> DemoRelease:
    return DemoRelease(Helm(program=helm.path, kubeconfig=helm.path), client(kubectl))


def test_a_release_that_is_there_stays(helm: Program, kubectl: Program) -> None:
    helm.answers(list={"out": LISTED})
    found = release(helm, kubectl)
    assert found.ensure() == "noctaya-0.5.0"
    found.remove()
    assert not any("install" in line for line in helm.asked)
    assert kubectl.asked == []


def test_what_the_demo_has_installed_goes_with_its_crds_and_no_others(
    helm: Program, kubectl: Program
) -> None:
    helm.answers(list={"out": "[]"})
    made = release(helm, kubectl)
    made.ensure()
    assert made.made
    kubectl.answers(get={"out": CRDS})
    made.remove()
    assert any(line.startswith("uninstall noctaya") for line in helm.asked)
    deleted = [line for line in kubectl.asked if line.startswith("delete")]
    assert deleted == [
        "delete --ignore-not-found customresourcedefinitions llmservices.serving.noctaya.io",
        "delete --ignore-not-found namespace noctaya-system",
    ]


def test_ctrl_c_does_not_spoil_the_end() -> None:
    before = signal.getsignal(signal.SIGINT)
    with quiet_signals():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
