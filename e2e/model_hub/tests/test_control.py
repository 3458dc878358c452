"""The control interface, and the stand-in as a process."""

import asyncio
import signal
import sys
from pathlib import Path

import httpx
from noctaya_model_hub import Hub, Pattern, sha256


async def test_a_repository_is_made_and_moved_over_http(hub: Hub, http: httpx.AsyncClient) -> None:
    body = {
        "files": {"a.txt": "text", "b.bin": {"base64": "AAE="}, "c.bin": {"size": 5000, "seed": 3}},
        "gated": True,
        "tokens": ["t"],
    }
    made = (await http.put("/_hub/repositories/new/model", json=body)).json()
    assert made["files"]["c.bin"] == sha256(Pattern(size=5000, seed=3))
    assert hub.repositories["new/model"].gated
    moved = (
        await http.put("/_hub/repositories/new/model", json={"commit": True, "files": {"a.txt": "2"}})
    ).json()
    assert moved["sha"] != made["sha"]
    assert set(hub.repositories["new/model"].commits) == {made["sha"], moved["sha"]}


async def test_faults_and_the_log_over_http(http: httpx.AsyncClient) -> None:
    fault = {
        "on": {"route": "info", "calls": [1]},
        "effect": {"status": 429, "headers": {"Retry-After": "3"}},
    }
    assert (await http.post("/_hub/faults", json=fault)).status_code == 200
    assert (await http.get("/api/models/org/model")).headers["retry-after"] == "3"
    assert (await http.get("/api/models/org/model")).status_code == 200
    log = (await http.get("/_hub/requests")).json()
    assert [one["status"] for one in log if one["route"] == "info"] == [429, 200]
    await http.delete("/_hub/faults")
    await http.delete("/_hub/requests")
    assert [one["route"] for one in (await http.get("/_hub/requests")).json()] == ["control"]


async def test_a_bucket_and_its_keys_over_http(hub: Hub, http: httpx.AsyncClient) -> None:
    body = {"objects": {"a": "b"}, "keys": {"ID": "secret"}}
    assert (await http.put("/_hub/buckets/weights", json=body)).json() == ["a"]
    assert hub.s3_keys == {"ID": "secret"}


async def test_malformed_control_is_a_400_that_says_why(http: httpx.AsyncClient) -> None:
    assert "files" in (await http.put("/_hub/repositories/a/b", json={})).json()["error"]
    assert (await http.post("/_hub/faults", content=b"{")).status_code == 400
    wrong = {"on": {"rout": "x"}, "effect": {}}
    assert "rout" in (await http.post("/_hub/faults", json=wrong)).json()["error"]
    assert (await http.get("/_hub/nothing")).status_code == 400


async def test_the_process_serves_a_folder_and_stops_on_sigterm(tmp_path: Path) -> None:
    weights = tmp_path / "org" / "model" / "sub" / "w.safetensors"
    weights.parent.mkdir(parents=True)
    weights.write_bytes(b"weights")
    ports = ("--port=0", "--cdn-port=0", "--s3-port=0", "--host=127.0.0.1", "--cdn-host=127.0.0.1")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "noctaya_model_hub",
        *ports,
        f"--folder={tmp_path}",
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(30):
            line = (await process.stdout.readline()).decode().split()
        async with httpx.AsyncClient(base_url=line[1], trust_env=False, follow_redirects=True) as http:
            assert (await http.get("/_hub/healthz")).json()["repositories"] == ["org/model"]
            assert (await http.get("/org/model/resolve/main/sub/w.safetensors")).content == b"weights"
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(10):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_a_folder_that_is_missing_is_an_error() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "noctaya_model_hub",
        "--folder=/nonexistent/folder",
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await process.communicate()
    assert process.returncode == 1
    assert b"/nonexistent/folder" in errors
