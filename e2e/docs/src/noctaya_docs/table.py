"""Every command of every page with what proves it.

A command that is in a page and not here fails a test, and so does a row whose command is in its page no more.
"""

from __future__ import annotations

from typing import Final

from noctaya_docs.ways import Way, api, cluster, here, outside, test

INSTALL: Final = "helm install noctaya charts/operator -n noctaya-system --create-namespace --wait"
UPGRADE: Final = "helm upgrade noctaya charts/operator -n noctaya-system --reset-then-reuse-values"
APPLY_QUICKSTART: Final = (
    "kubectl apply -f examples/quickstart/runtime.yaml -f examples/quickstart/service.yaml"
)
VALIDATED: Final = r"\bis valid\b|LLMService"
HELLO: Final = (
    """-H 'content-type: application/json' -d '{"model":"smollm2","stream":true,"""
    """"messages":[{"role":"user","content":"Hello!"}]}'"""
)
KEDA_CHART: Final = "needs KEDA's chart from its repository; here KEDA is built from its Go modules"
WHEELS: Final = "e2e/packages/test_installed_packages.py::test_the_console_script_tells_its_version"
FROM_ZERO: Final = "e2e/scenarios/tests/test_real_model.py"

ALONE: Final[dict[str, tuple[str, ...]]] = {
    "README.md": (),
    "docs/install.md": (),
    "docs/operations.md": (INSTALL, APPLY_QUICKSTART),
}
"""Pages that begin with an API server of their own, and what their reader has done before."""

TOGETHER: Final = (
    INSTALL,
    APPLY_QUICKSTART,
    *(f"kubectl create namespace {name}" for name in ("apps", "models", "monitoring")),
)
"""What the readers of all other pages have done before, on one API server."""

NAMES: Final = {"SERVICE": "smollm2", "NODE": "node-a"}
"""Words that stand for something in the pages."""

WAYS: Final[dict[str, dict[str, Way]]] = {
    "README.md": {
        "./dev demo": test("tox:demo"),
        "./dev test": test("dev"),
        "helm install noctaya charts/operator --namespace noctaya-system --create-namespace": api(
            "is installed"
        ),
        "kubectl apply -k examples/nvidia/a10": api("qwen2-5-7b-a10 created"),
        "pip install './libs/noctaya-api[grpc,yaml]' './libs/noctaya-cli[cluster]'": test(WHEELS),
        "noctaya status; noctaya explain qwen2-5-7b-a10": api(
            r"qwen2-5-7b-a10 [\s\S]*default/qwen2-5-7b-a10: "
        ),
        "pip install ./libs/noctaya-api ./services/gateway ./libs/noctaya-cli ./e2e/model_servers/llamacpp": (
            test(WHEELS)
        ),
        "noctaya validate examples/quickstart": here(VALIDATED),
        "noctaya run examples/quickstart --volume models=$HOME/.cache/noctaya/models": test("tox:demo"),
    },
    "docs/getting-started.md": {
        "./dev demo --cluster --keep --port 8080": cluster(),
        "pip install './libs/noctaya-api[grpc,yaml]' './libs/noctaya-cli[cluster]'": test(WHEELS),
        "kubectl config set-context --current --namespace noctaya-demo": cluster("modified"),
        "noctaya status": cluster(r"smollm2 "),
        "kubectl get llmservice smollm2 -o yaml": cluster("uri: pvc://models"),
        "curl -sN http://127.0.0.1:8080/v1/chat/completions -H 'content-type: application/json' "
        """-d '{"model":"smollm2","stream":true,"max_tokens":16,"messages":"""
        """[{"role":"user","content":"Hello!"}]}'""": cluster(r": heartbeat\n[\s\S]*\ndata: \[DONE\]"),
        "noctaya explain smollm2": cluster("cold start of"),
        "kubectl get pods": cluster("smollm2-gateway"),
        "noctaya doctor": cluster("services ", codes=(0, 1)),
        "kind create cluster": outside("needs Docker with registries, and kind"),
        "helm install keda keda --repo https://kedacore.github.io/charts -n keda --create-namespace": (
            outside(KEDA_CHART)
        ),
        "docker build -t noctaya/llamacpp-server:0.5.0 -f e2e/model_servers/llamacpp/Dockerfile .": outside(
            "needs Docker with registries; e2e/images tests the image of the same file"
        ),
        "kind load docker-image noctaya/llamacpp-server:0.5.0": outside("needs kind"),
        "./dev demo": test("tox:demo"),
    },
    "docs/install.md": {
        "helm install keda keda --repo https://kedacore.github.io/charts -n keda --create-namespace": (
            outside(KEDA_CHART)
        ),
        INSTALL: api("is installed"),
        APPLY_QUICKSTART: api("smollm2 created"),
        "kubectl get llmservices": api(r"smollm2 "),
        "kubectl run curl --rm -it --restart=Never --image=curlimages/curl -- "
        f"curl -N http://smollm2.default.svc/v1/chat/completions {HELLO}": outside(
            f"needs curl's image from its registry; {FROM_ZERO} makes the same request"
        ),
        "helm upgrade noctaya charts/operator -n noctaya-system --reset-then-reuse-values --wait": api(
            "has been upgraded"
        ),
        "kubectl delete llmservices --all-namespaces --all && kubectl delete inferenceruntimes --all": api(
            '"smollm2" deleted'
        ),
        "helm history noctaya -n noctaya-system": api("Upgrade complete"),
        "helm rollback noctaya -n noctaya-system --wait": api("Rollback was a success"),
        "helm uninstall noctaya -n noctaya-system": api('"noctaya" uninstalled'),
        "kubectl delete crd llmservices.serving.noctaya.io inferenceruntimes.serving.noctaya.io": api(
            "deleted"
        ),
    },
    "docs/operations.md": {
        "helm upgrade noctaya charts/operator -n noctaya-system --reset-then-reuse-values "
        "--set gateway.replicas=2 --wait": api("2 gateways for each"),
        "noctaya wake SERVICE --for 30m": api("smollm2"),
        "noctaya pin SERVICE --replicas 1 --for 8h": api("smollm2"),
        "noctaya unpin SERVICE": api("smollm2"),
        "noctaya sleep SERVICE --for 2h": api("smollm2"),
        "noctaya wake SERVICE": api("smollm2"),
        "kubectl drain NODE --ignore-daemonsets --delete-emptydir-data": api("drained"),
        "kubectl uncordon NODE": api("uncordoned"),
        """kubectl create secret generic SERVICE-keys --from-literal=keys="$(printf 'old-key\\nnew-key')" """
        "--dry-run=client -o yaml | kubectl apply -f -": api("smollm2-keys created"),
        "kubectl create secret generic SERVICE-keys --from-literal=keys=new-key --dry-run=client -o yaml "
        "| kubectl apply -f -": api("smollm2-keys configured"),
        "kubectl get inferenceruntimes,llmservices --all-namespaces -o yaml "
        '> "$HOME/noctaya-backup.yaml"': api(),
        "kubectl delete llmservice SERVICE": api("deleted"),
    },
    "docs/performance.md": {
        f"./dev bench{rest}": test("e2e/bench/tests/test_command.py")
        for rest in (
            *("", " --quick", " --only P1,P2", " --write docs/performance.md"),
            *(" --only O1", " --only O1 --quick", " --only O1 --write docs/performance.md"),
            *(" prewarm", " prewarm --quick", " prewarm --write docs/performance.md"),
            *(" cluster", " cluster --quick", " cluster --write docs/performance.md"),
        )
    },
    "docs/troubleshooting.md": {
        "noctaya explain SERVICE": api("default/smollm2: "),
        "noctaya doctor": api("services ", codes=(0, 1)),
    },
    "docs/your-model.md": {
        "kubectl get inferenceruntimes": api(),
        "noctaya validate examples/nvidia/a10": here(VALIDATED),
        "kubectl apply -k examples/nvidia/a10": api(r"qwen2-5-7b-a10 (created|unchanged)"),
        "noctaya explain qwen2-5-7b-a10": api("default/qwen2-5-7b-a10: "),
        "noctaya wake qwen2-5-7b-a10": api("kept awake"),
    },
    "examples/README.md": {
        "noctaya validate examples/nvidia/a10": here(VALIDATED),
        "kubectl apply -k examples/nvidia/a10": api(r"qwen2-5-7b-a10 (created|unchanged)"),
        "kubectl get llm -w": outside("watches until Ctrl-C; `kubectl get llmservices` is run"),
    },
    "examples/observability/README.md": {
        "kubectl apply -n monitoring -k examples/observability": api("created"),
        "kubectl apply -n monitoring -k examples/observability/traces": api("collector created"),
        f"{UPGRADE} --set tracing.endpoint=http://collector.monitoring:4318 --wait": api("has been upgraded"),
        "kubectl create secret generic collector-headers -n models "
        "--from-literal=headers='authorization=Bearer%20TOKEN'": api("collector-headers created"),
        f"{UPGRADE} --set tracing.headersSecret=collector-headers --wait": api("has been upgraded"),
    },
    "examples/quickstart/README.md": {
        "noctaya run examples/quickstart --volume models=$HOME/.cache/noctaya/models": test("tox:demo"),
        f"curl -N http://127.0.0.1:8080/v1/chat/completions {HELLO}": test("tox:demo"),
        "kubectl apply -f examples/quickstart": api("smollm2 (created|unchanged)"),
        "kubectl get llmservices": api(r"smollm2 "),
        "kubectl port-forward service/smollm2 8080:80": test("e2e/demo/src/noctaya_demo/cluster/forward.py"),
    },
    "examples/security/README.md": {
        "kubectl label namespace apps serving.noctaya.io/client-access=true": api("labeled"),
        "kubectl apply -n models -k examples/security/network-policies": api("created"),
        "kubectl label namespace models pod-security.kubernetes.io/enforce=restricted": api("labeled"),
    },
}
