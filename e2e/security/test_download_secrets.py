"""M3: hub tokens, S3 keys, passwords of registries and proxies: the agent writes them nowhere but into the
file that the registry client reads."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from noctaya_model_hub import Effect, Hub, Match, Served, running_hub

from .canaries import files_below, leaks
from .programs import Program

SECRETS = {
    "hub token": "canary-hub-token-8f14e45fceea",
    "wrong hub token": "canary-wrong-token-c9f0f895fb98",
    "access key": "CANARYACCESSKEY45C48CCE2E2D",
    "secret key": "canary-secret-key-d3d9446802a44259",
    "session token": "canary-session-6512bd43d9caa6e0",
    "registry password": "canary-registry-c20ad4d76fe97759",
    "URL password": "canary-url-password-c51ce410c124",
    "proxy password": "canary-proxy-password-aab3238922bc",
}
FILES = {"config.json": b"{}", "model.safetensors": b"x" * 100_000}


@contextmanager
def served_beside(hub: Hub) -> Iterator[Served]:
    """Serve the hub from a thread of its own."""
    loop, begun, ended = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    found: list[Served] = []

    async def serve() -> None:
        async with running_hub(hub) as served:
            found.append(served)
            begun.set()
            await ended.wait()
        await asyncio.sleep(0)

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert begun.wait(30)
        yield found[0]
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(30)
        loop.close()


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    hub = Hub()
    hub.create("org/gated", FILES, gated=True, tokens=[SECRETS["hub token"]])
    hub.create("org/odd", {**FILES, "odd.bin": b"odd"})
    hub.bucket("weights", {f"model/{name}": content for name, content in FILES.items()})
    hub.faults.add(Match(path="odd.bin"), Effect(status=500))
    with served_beside(hub) as running:
        yield running


PROXY = dict.fromkeys(("HTTP_PROXY", "http_proxy"), f"http://user:{SECRETS['proxy password']}@127.0.0.1:9")
CASES = {
    "a gated model": ("hf://org/gated", "hub token", {}),
    "a token that is refused": ("hf://org/gated", "wrong hub token", {}),
    "a hub that fails": ("hf://org/odd", "hub token", {}),
    "nothing there": ("hf://org/absent@v1", "hub token", {}),
    "ModelScope": ("modelscope://org/gated", "hub token", {}),
    "ModelScope, refused": ("modelscope://org/gated", "wrong hub token", {}),
    "a bucket": ("s3://weights/model", "secret key", {}),
    "a bucket that is not there": ("s3://absent/model", "secret key", {}),
    "a password in the URL": (
        "hf://org/gated",
        "hub token",
        {"NOCTAYA_PREWARM_ENDPOINT": f"http://user:{SECRETS['URL password']}@127.0.0.1:9"},
    ),
    "a bucket with a password in the URL": (
        "s3://weights/model",
        "secret key",
        {"NOCTAYA_PREWARM_ENDPOINT": f"http://user:{SECRETS['URL password']}@127.0.0.1:9"},
    ),
    "a proxy that is not there": (
        "hf://org/gated",
        "hub token",
        PROXY,
    ),
    "a bucket behind a proxy that is not there": (
        "s3://weights/model",
        "secret key",
        PROXY,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_m3_no_secret_of_a_download_is_written_anywhere(served: Served, tmp_path: Path, case: str) -> None:
    uri, credential, more = CASES[case]
    secret, cache = tmp_path / "secret", tmp_path / "cache"
    secret.mkdir()
    cache.mkdir()
    if uri.startswith("s3:"):
        for key, name in (
            ("AWS_ACCESS_KEY_ID", "access key"),
            ("AWS_SECRET_ACCESS_KEY", credential),
            ("AWS_SESSION_TOKEN", "session token"),
        ):
            (secret / key).write_text(SECRETS[name])
    else:
        (secret / "token").write_text(SECRETS[credential])
    agent = Program(
        "noctaya-prewarm",
        *("download", "--source", uri, "--target", str(cache / "model")),
        env={
            "NOCTAYA_PREWARM_LOG_LEVEL": "debug",
            "NOCTAYA_PREWARM_LISTEN_ADDR": "127.0.0.1:0",
            "NOCTAYA_PREWARM_TERMINATION_LOG": str(tmp_path / "termination"),
            "NOCTAYA_PREWARM_SECRET_DIR": str(secret),
            "NOCTAYA_PREWARM_ENDPOINT": served.s3_url if uri.startswith("s3:") else served.url,
            "NOCTAYA_PREWARM_RETRY_LIMIT": "1s",
            "NOCTAYA_PREWARM_DEADLINE": "40s",
            **more,
        },
        folder=tmp_path,
    )
    with agent:
        code = agent.end()
        assert code in {0, 2, 10, 11, 16}, agent.output
    # Settings that can't be used are told on the output, before it is known where else.
    assert code == 2 or (tmp_path / "termination").read_bytes()
    assert not leaks(SECRETS, {**agent.places(), **files_below(tmp_path, but=[secret])})


def test_m3_progress_and_metrics_hold_no_secret_meanwhile(served: Served, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "token").write_text(SECRETS["hub token"])
    agent = Program(
        "noctaya-prewarm",
        *("download", "--source", "hf://org/odd", "--target", str(tmp_path / "model")),
        env={
            "NOCTAYA_PREWARM_LISTEN_ADDR": "127.0.0.1:0",
            "NOCTAYA_PREWARM_TERMINATION_LOG": str(tmp_path / "termination"),
            "NOCTAYA_PREWARM_SECRET_DIR": str(secret),
            "NOCTAYA_PREWARM_ENDPOINT": served.url,
        },
        folder=tmp_path,
    )
    with agent:
        base = f"http://127.0.0.1:{agent.record('serving')['http_port']}"
        places = {
            name: httpx.get(f"{base}{name}", trust_env=False).text for name in ("/progress", "/metrics")
        }
    assert not leaks(SECRETS, places)


def docker_config(password: str) -> str:
    both = base64.b64encode(f"user:{password}".encode()).decode()
    return json.dumps({"auths": {"registry.example.com": {"auth": both, "password": password}}})


@pytest.mark.parametrize(
    "config",
    [
        docker_config(SECRETS["registry password"]),
        docker_config(SECRETS["registry password"]).replace("registry.example.com", "other.example.com"),
        json.dumps({"auths": {"registry.example.com": {"auth": SECRETS["registry password"]}}}),
        json.dumps({"auths": {"registry.example.com": {"password": SECRETS["registry password"]}}}),
        json.dumps({"auths": SECRETS["registry password"]}),
        docker_config(SECRETS["registry password"])[:-2],
    ],
    ids=["good", "another registry", "no base64", "no user", "no object", "cut"],
)
def test_m5_a_registry_password_stands_only_in_the_file_that_is_made_for_it(
    tmp_path: Path, config: str
) -> None:
    secret, made = tmp_path / "secret", tmp_path / "made"
    secret.mkdir()
    made.mkdir()
    (secret / ".dockerconfigjson").write_text(config)
    digest = "0123456789abcdef" * 4
    agent = Program(
        "noctaya-prewarm",
        "registry-auth",
        *("--config", str(secret / ".dockerconfigjson")),
        *("--source", f"oci://registry.example.com/model@sha256:{digest}"),
        *("--output", str(made / "config.json")),
        env={
            "NOCTAYA_PREWARM_LOG_LEVEL": "debug",
            "NOCTAYA_PREWARM_TERMINATION_LOG": str(tmp_path / "termination"),
        },
        folder=tmp_path,
    )
    with agent:
        assert agent.end() in {0, 2}, agent.output
    assert not leaks(SECRETS, {**agent.places(), **files_below(tmp_path, but=[secret, made])})
