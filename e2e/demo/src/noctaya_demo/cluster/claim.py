"""A claim with a file of this machine in it: written through a Pod, so any cluster and storage will do."""

import hashlib
import json
import subprocess
from pathlib import Path, PurePosixPath

from noctaya_cluster import ClusterError, Kubectl

LOADER = "weights-loader"
MOUNT = PurePosixPath("/models")
WITHIN = "120s"
RECEIVE = """
import hashlib, os, sys
target, wanted = sys.argv[1:]
os.makedirs(os.path.dirname(target), exist_ok=True)
seen = hashlib.sha256()
with open(target + ".partial", "wb") as file:
    while chunk := sys.stdin.buffer.read(1 << 20):
        seen.update(chunk)
        file.write(chunk)
    file.flush()
    os.fsync(file.fileno())
if seen.hexdigest() != wanted:
    sys.exit(f"{target}: SHA-256 is {seen.hexdigest()} instead of {wanted}")
os.replace(target + ".partial", target)
"""


def fill_claim(
    kubectl: Kubectl,
    *,
    namespace: str,
    claim: str,
    size: str,
    image: str,
    source: Path,
    target: PurePosixPath,
) -> None:
    """Make a claim and write `source` to `target` in it, complete and verified or not at all.

    Args:
        kubectl: of the cluster.
        namespace: exists already.
        claim: its name; of the default StorageClass.
        size: a quantity.
        image: has `python3`; it is on the nodes.
        source: a file here.
        target: relative to the root of the claim.

    Raises:
        ClusterError: with what kubectl said.
    """
    objects = [claim_object(claim, size), loader_object(image, claim)]
    document = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    kubectl.run("--namespace", namespace, "apply", "--filename=-", stdin=document)
    kubectl.run(
        "--namespace", namespace, "wait", "--for=condition=Ready", f"pod/{LOADER}", f"--timeout={WITHIN}"
    )
    _send(kubectl, namespace, source, str(MOUNT / target))
    kubectl.run("--namespace", namespace, "delete", "pod", LOADER, "--grace-period=1", f"--timeout={WITHIN}")


def claim_object(name: str, size: str) -> dict[str, object]:
    """A claim of the default StorageClass."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}},
    }


def loader_object(image: str, claim: str) -> dict[str, object]:
    """A Pod that waits with the claim mounted."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": LOADER},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65532,
                "fsGroup": 65532,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "loader",
                    "image": image,
                    "command": ["python3", "-c", "import time; time.sleep(3600)"],
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "readOnlyRootFilesystem": True,
                        "capabilities": {"drop": ["ALL"]},
                    },
                    "volumeMounts": [{"name": "models", "mountPath": str(MOUNT)}],
                }
            ],
            "volumes": [{"name": "models", "persistentVolumeClaim": {"claimName": claim}}],
        },
    }


def _send(kubectl: Kubectl, namespace: str, source: Path, target: str) -> None:
    with source.open("rb") as file:
        wanted = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(0)
        inside = ("--", "python3", "-c", RECEIVE, target, wanted)
        done = subprocess.run(
            [*kubectl.prefix, "--namespace", namespace, "exec", "--stdin", LOADER, *inside],
            stdin=file,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        raise ClusterError(f"writing {target}: {done.stderr.strip()[-500:]}")
