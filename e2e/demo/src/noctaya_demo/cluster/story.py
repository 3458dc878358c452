"""The demo on a cluster, from the first line to the last."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from noctaya_cluster import Cluster, ClusterError, Kubectl, choose_provider
from noctaya_engine import EngineError, images
from noctaya_parts import BuildError
from noctaya_scenarios.release import NAMESPACE, HelmFailed, helm_for
from rich.console import Console

from noctaya_demo.act import SERVICE, Act
from noctaya_demo.cluster.claim import fill_claim
from noctaya_demo.cluster.forward import Forward
from noctaya_demo.cluster.place import ClusterPlace
from noctaya_demo.cluster.release import IMAGES, DemoRelease
from noctaya_demo.fetching import fetch
from noctaya_demo.quiet import quiet_signals
from noctaya_demo.step import Step, StepFailed
from noctaya_demo.weights import FOLDER, MEMBER, models_directory

NAMESPACE_OF_DEMO = "noctaya-demo"
MODEL_IMAGE = "llamacpp-server"
CLAIM, CLAIM_SIZE = "models", "256Mi"
RUNTIME = "llamacpp-cpu"
IDLE_WITHIN = "180s"
FAILURES = (ClusterError, HelmFailed, EngineError, BuildError)
"""What a step can end with besides its own error."""


@dataclass(frozen=True, slots=True)
class Ground:
    """The cluster of the demo; one that was up before is `shared`, and left as it was found."""

    cluster: Cluster
    shared: bool


def tell(
    console: Console, *, provider: str | None, confirmed: bool, manifests: Path, port: int, keep: bool
) -> None:
    """Everything, in order; raises when a step doesn't hold. What it made is gone afterwards either way.

    Args:
        console: told what happens.
        provider: of the cluster; None for what works here.
        confirmed: that an existing cluster may be used.
        manifests: of the model.
        port: of the endpoint on this machine; 0 for any.
        keep: stay until Ctrl-C before it all goes.
    """
    fetch(console)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="noctaya-demo-")))
        ground = stack.enter_context(_cluster(console, provider, confirmed=confirmed))
        try:
            _perform(console, ground, stack, manifests=manifests, folder=folder, port=port, keep=keep)
        except Exception:
            _keep_evidence(console, ground.cluster)
            raise


def _perform(
    console: Console,
    ground: Ground,
    stack: ExitStack,
    *,
    manifests: Path,
    folder: Path,
    port: int,
    keep: bool,
) -> None:
    """Everything on the cluster; what has to be undone is left to `stack`."""
    model_image = _load(console, ground.cluster)
    stack.enter_context(_installed(console, ground))
    stack.enter_context(_namespace(console, ground))
    _apply(console, ground.cluster.kubectl, manifests, model_image=model_image)
    with Step(console, "endpoint") as step:
        kubectl = ground.cluster.kubectl
        forward = stack.enter_context(
            Forward(kubectl, namespace=NAMESPACE_OF_DEMO, service=SERVICE, folder=folder, port=port)
        )
        place = stack.enter_context(
            ClusterPlace(kubectl, namespace=NAMESPACE_OF_DEMO, service=SERVICE, forward=forward)
        )
        url = f"http://{forward.address}/v1"
        step.say(f"{url} leads to service/{SERVICE}")
    act = Act(console, place, url)
    act.asleep()
    act.cold_start()
    act.warm_answer()
    act.burst()
    act.back_to_zero()
    act.draw()
    if keep:
        console.print(f"  export KUBECONFIG={ground.cluster.kubeconfig}", soft_wrap=True)
        console.print(f"  kubectl --namespace {NAMESPACE_OF_DEMO} get llmservices,pods\n")
        act.stay()


def _keep_evidence(console: Console, cluster: Cluster) -> None:
    with Step(console, "evidence") as step:
        folder = Path(tempfile.mkdtemp(prefix="noctaya-demo-failed-"))
        cluster.diagnostics(folder, namespaces=(NAMESPACE_OF_DEMO, NAMESPACE))
        step.say(f"objects, events and logs are in {folder}")


@contextmanager
def _cluster(console: Console, provider: str | None, *, confirmed: bool) -> Iterator[Ground]:
    """A cluster that runs; taken down at the end unless it was up before."""
    with Step(console, "cluster") as step:
        cluster = choose_provider(provider, confirmed=confirmed, report=step.report)
        shared = cluster.name == "existing" or _is_up(cluster)
        cluster.start()
        nodes = len(cluster.nodes)
        step.say(f"{cluster.name}, {nodes} nodes, with KEDA{', was up already' if shared else ''}")
    try:
        yield Ground(cluster, shared)
    finally:
        if not shared:
            with quiet_signals(), Step(console, "stopped") as step:
                cluster.stop()
                step.say("the cluster is gone, with everything in it")


def _is_up(cluster: Cluster) -> bool:
    try:
        cluster.status()
    except ClusterError:
        return False
    return True


def _load(console: Console, cluster: Cluster) -> str:
    """Our images are on the nodes; the name of the model server's."""
    with Step(console, "images") as step:
        built = images.ensure(*IMAGES, MODEL_IMAGE, report=step.report)
        cluster.load_image(*(each.tar for each in built.values()))
        step.say(f"{', '.join(built)}: on every node")
    return built[MODEL_IMAGE].reference


@contextmanager
def _installed(console: Console, ground: Ground) -> Iterator[None]:
    """The operator runs; removed at the end unless it was there before."""
    cluster = ground.cluster
    with Step(console, "helm") as step:
        release = DemoRelease(helm_for(cluster, report=step.report), cluster.kubectl)
        try:
            chart = release.ensure()
        except BaseException:
            with quiet_signals():
                release.remove()
            raise
        how = "install charts/operator" if release.made else "it is there already"
        step.say(f"{how}: {chart} in {NAMESPACE}")
    try:
        yield
    finally:
        if release.made and ground.shared:
            with quiet_signals(), Step(console, "uninstalled") as step:
                release.remove()
                step.say(f"the release, {NAMESPACE} and the CRDs are gone")


@contextmanager
def _namespace(console: Console, ground: Ground) -> Iterator[None]:
    """A namespace for the manifests; it and all that they make is gone at the end."""
    kubectl = ground.cluster.kubectl
    with Step(console, "namespace") as step:
        made = kubectl.attempt("create", "namespace", NAMESPACE_OF_DEMO)
        if made.returncode != 0:
            raise StepFailed(
                f"{made.stderr.strip()}: another demo uses this cluster, or one was killed; "
                f"kubectl delete namespace {NAMESPACE_OF_DEMO}"
            )
        step.say(NAMESPACE_OF_DEMO)
    had_runtime = kubectl.attempt("get", "inferenceruntime", RUNTIME).returncode == 0
    try:
        yield
    finally:
        if ground.shared:
            with quiet_signals(), Step(console, "deleted") as step:
                kubectl.run("delete", "--ignore-not-found", "namespace", NAMESPACE_OF_DEMO)
                if not had_runtime:
                    kubectl.run("delete", "--ignore-not-found", "inferenceruntime", RUNTIME)
                step.say(f"namespace {NAMESPACE_OF_DEMO} and what was in it")


def _apply(console: Console, kubectl: Kubectl, manifests: Path, *, model_image: str) -> None:
    """The claim holds the weights and the service sleeps."""
    where = ("--namespace", NAMESPACE_OF_DEMO)
    with Step(console, "claim") as step:
        fill_claim(
            kubectl,
            namespace=NAMESPACE_OF_DEMO,
            claim=CLAIM,
            size=CLAIM_SIZE,
            image=model_image,
            source=models_directory() / FOLDER / Path(MEMBER).name,
            target=PurePosixPath(FOLDER) / Path(MEMBER).name,
        )
        step.say(f"the weights are on the claim “{CLAIM}”")
    with Step(console, "apply") as step:
        kubectl.run(*where, "apply", "--filename", str(manifests))
        for state in ("jsonpath={.status.phase}=ScaledToZero", "condition=AutoscalingReady"):
            service = f"llmservice/{SERVICE}"
            kubectl.run(*where, "wait", f"--for={state}", service, f"--timeout={IDLE_WITHIN}")
        step.say(f"{manifests} as it is; kubectl get llmservice {SERVICE}: ScaledToZero")
