"""Keys, tokens, prompts: gateway and aggregate scaler, at the most verbose level and with traces, through
success and every failure, write none of them anywhere."""

from __future__ import annotations

from pathlib import Path

import httpx

from .backends import Backend
from .canaries import leaks
from .conftest import Collector
from .programs import Program, eventually

SECRETS = {
    "client key": "canary-client-key-5f2c90d1ab",
    "second client key": "canary-second-key-77aa01cc3e",
    "wrong client key": "canary-wrong-key-91be44d002",
    "demand token": "canary-demand-token-2b7e151628aed2a6abf71588",
    "wrong demand token": "canary-other-token-09cf4f3c762e7160f38b4da5",
    "prompt": "canary-prompt-the-quick-brown-fox",
    "query": "canary-query-d41d8cd98f00b204",
    "cookie": "canary-cookie-e4da3b7fbbce2345",
    "proxy password": "canary-proxy-password-1679091c5a",
    "collector token": "canary-collector-token-6512bd43d9",
}
PATH = f"/v1/chat/completions?api_key={SECRETS['query']}"


def ask(base: str, header: str, value: str, *, stream: bool = False) -> int:
    """One request with a credential; its status, 0 for an answer that broke off."""
    headers = {header: value, "Cookie": f"session={SECRETS['cookie']}"}
    body = {"stream": stream, "messages": [{"role": "user", "content": SECRETS["prompt"]}]}
    try:
        answer = httpx.post(f"{base}{PATH}", json=body, headers=headers, timeout=60, trust_env=False)
    except httpx.TransportError:
        return 0
    return answer.status_code


def test_secrets_of_requests_and_reports_are_written_nowhere(tmp_path: Path, collector: Collector) -> None:
    keys, token, headers = tmp_path / "keys", tmp_path / "token", tmp_path / "headers"
    headers.write_text(f"authorization=Bearer%20{SECRETS['collector token']}\n")
    keys.write_text(f"{SECRETS['client key']}\n{SECRETS['second client key']}\n")
    token.write_text(SECRETS["demand token"])
    common = {
        "NOCTAYA_LOG_LEVEL": "debug",
        "NOCTAYA_SCALER_LISTEN_ADDR": "127.0.0.1:0",
        "NOCTAYA_DEMAND_AUTH_TOKEN_FILE": str(token),
        "HTTP_PROXY": f"http://user:{SECRETS['proxy password']}@127.0.0.1:9",
        "NOCTAYA_TRACES_HEADERS_FILE": str(headers),
        **collector.env,
    }
    scaler = Program(
        "noctaya-aggregate-scaler",
        env={**common, "NOCTAYA_AGGREGATOR_LISTEN_ADDR": "127.0.0.1:0"},
        folder=tmp_path,
    )
    with scaler, Backend() as backend:
        scaler_url = f"http://127.0.0.1:{scaler.record('serving')['http_port']}"
        gateway = Program(
            "noctaya-gateway",
            env={
                **common,
                "NO_PROXY": "127.0.0.1",  # the scaler's traces go astray, this one's arrive
                "NOCTAYA_BACKEND_URL": backend.url,
                "NOCTAYA_LISTEN_ADDR": "127.0.0.1:0",
                "NOCTAYA_CLIENT_API_KEY_FILE": str(keys),
                "NOCTAYA_DEMAND_AGGREGATOR_URL": scaler_url,
                "NOCTAYA_ACCESS_LOG": "all",
                "NOCTAYA_ACTIVATION_TIMEOUT": "1s",
                "NOCTAYA_PROBE_INTERVAL": "50ms",
                "NOCTAYA_LAME_DUCK": "50ms",
            },
            folder=tmp_path,
        )
        with gateway:
            base = f"http://127.0.0.1:{gateway.record('listening', listener='http')['port']}"
            eventually(lambda: ready(base), what="a ready backend")
            statuses = all_ways(base, backend, keys)
            assert statuses == [200, 200, 200, 401, 401, 500, 0, 503, 503], statuses
            report_badly(scaler_url, token)
            places: dict[str, str | bytes] = {
                f"{name} of {base}": httpx.get(f"{base}{name}", trust_env=False).text
                for name in ("/metrics", "/readyz", "/noctaya/queue", "/noctaya/openapi.json")
            }
            places["metrics of the scaler"] = httpx.get(f"{scaler_url}/metrics", trust_env=False).text
            assert gateway.end(stop=True) == 0
        assert scaler.end(stop=True) == 0
    assert collector.received, "no trace was sent"
    assert collector.authorizations == {f"Bearer {SECRETS['collector token']}"}
    assert SECRETS["prompt"] not in "".join(backend.heads)
    keys_only = {name: SECRETS[name] for name in ("client key", "second client key")}
    assert not leaks(keys_only, {"heads that reached the backend": "".join(backend.heads)})
    places |= {**gateway.places(), **scaler.places(), "traces": b"".join(collector.received)}
    assert not leaks(SECRETS, places)
    assert '"level": "debug"' in gateway.output


def test_a_collector_behind_a_proxy_that_fails_gives_no_password_away(tmp_path: Path) -> None:
    with Backend() as backend:
        gateway = Program(
            "noctaya-gateway",
            env={
                **lone_gateway(backend),
                "NOCTAYA_LAME_DUCK": "50ms",
                "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
                "OTEL_EXPORTER_OTLP_HEADERS": f"authorization={SECRETS['wrong demand token']}",
                "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
                "OTEL_BSP_SCHEDULE_DELAY": "100",
                "HTTP_PROXY": f"http://user:{SECRETS['proxy password']}@127.0.0.1:9",
            },
            folder=tmp_path,
        )
        with gateway:
            base = f"http://127.0.0.1:{gateway.record('listening', listener='http')['port']}"
            eventually(lambda: ready(base), what="a ready backend")
            assert ask(base, "x-api-key", SECRETS["client key"]) == 200
            gateway.record("traces can't be exported and are dropped until they can be")
            gateway.end(stop=True)
    assert not leaks(SECRETS, gateway.places())


def test_a_collectors_address_with_a_password_is_refused_without_telling_it(tmp_path: Path) -> None:
    with Backend() as backend:
        gateway = Program(
            "noctaya-gateway",
            env={
                **lone_gateway(backend),
                "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://u:{SECRETS['proxy password']}@127.0.0.1:9",
            },
            folder=tmp_path,
        )
        with gateway:
            assert gateway.end() == 1
    assert "OTEL_EXPORTER_OTLP_ENDPOINT: must hold no user and no password" in gateway.output
    assert not leaks(SECRETS, gateway.places())


def lone_gateway(backend: Backend) -> dict[str, str]:
    """The environment of a gateway beside no other."""
    return {
        "NOCTAYA_LOG_LEVEL": "debug",
        "NOCTAYA_BACKEND_URL": backend.url,
        "NOCTAYA_LISTEN_ADDR": "127.0.0.1:0",
        "NOCTAYA_SCALER_LISTEN_ADDR": "127.0.0.1:0",
    }


def ready(base: str) -> bool:
    return bool(httpx.get(f"{base}/readyz", trust_env=False).json().get("backend_ready"))


def all_ways(base: str, backend: Backend, keys: Path) -> list[int]:
    """Statuses of a request in each way that it can go."""
    good, wrong = SECRETS["client key"], SECRETS["wrong client key"]
    found = [
        ask(base, "Authorization", f"Bearer {good}"),
        ask(base, "x-api-key", SECRETS["second client key"]),
        ask(base, "api-key", good, stream=True),
        ask(base, "Authorization", f"Bearer {wrong}"),
        ask(base, "Authorization", f"Basic {wrong}"),
    ]
    for backend.how in ("bad", "broken"):
        found.append(ask(base, "x-api-key", good))
    backend.how = "cold"
    eventually(lambda: not ready(base), what="a cold backend")
    found.append(ask(base, "x-api-key", good))
    backend.how = "good"
    keys.write_text("")
    eventually(lambda: ask(base, "x-api-key", good) == 503, what="a key file that can't be used")
    found.append(ask(base, "x-api-key", good))
    return found


def report_badly(url: str, token: Path) -> None:
    """Reports with a wrong token, and none readable."""
    report = {"memberID": "somebody", "sequence": 1, "demand": 1}
    for given in (SECRETS["wrong demand token"], SECRETS["demand token"][:-1]):
        headers = {"Authorization": f"Bearer {given}"}
        answer = httpx.post(f"{url}/v1/demand", json=report, headers=headers, trust_env=False)
        assert answer.status_code == 401
    good = {"Authorization": f"Bearer {SECRETS['demand token']}"}
    answer = httpx.post(f"{url}/v1/demand", content=b"{", headers=good, trust_env=False)
    assert answer.status_code == 400
    token.write_text("canary-short")

    def unusable() -> bool:
        answer = httpx.post(f"{url}/v1/demand", json=report, headers=good, trust_env=False)
        return answer.status_code in {401, 503}

    eventually(unusable, what="a token file that can't be used")
