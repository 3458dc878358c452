"""A Prometheus of our own on loopback, and what it answers."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import httpx
import yaml
from noctaya_apiserver.child import Child, ChildFailed
from noctaya_apiserver.client import wait_for
from noctaya_apiserver.ports import free_ports
from noctaya_parts.debian import ensure_packages

PROGRAM: Final = "prometheus"
START_SECONDS: Final = 60.0
PORT_TRIES: Final = 3

Labels = Mapping[str, str]


class Prometheus:
    """One process; a context manager.

    Args:
        folder: for configuration, data and log.
        jobs: its scrape jobs.
        rules: groups of rules.
    """

    def __init__(
        self, folder: Path, *, jobs: Iterable[Mapping[str, Any]], rules: Mapping[str, Any] | None = None
    ) -> None:
        self._folder = folder
        self._jobs = list(jobs)
        self._rules = rules
        self._child: Child | None = None
        self._http = httpx.Client(trust_env=False, timeout=30.0)

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        config: dict[str, Any] = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "scrape_configs": self._jobs,
        }
        if self._rules is not None:
            rules = self._folder / "rules.yaml"
            rules.write_text(yaml.safe_dump(dict(self._rules)))
            config["rule_files"] = [str(rules)]
        file = self._folder / "prometheus.yaml"
        file.touch(mode=0o600)  # it holds the token for the API server
        file.write_text(yaml.safe_dump(config))
        self._start(file)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._http.close()
        if self._child is not None:
            self._child.stop()

    def values(self, expression: str, *, at: float | None = None) -> dict[str, float]:
        """An expression's answer now, or at a time: values by their labels, written as `a=b,c=d`."""
        when = {} if at is None else {"time": at}
        found = self._get("query", query=expression, **when)["result"]
        return {written(each["metric"]): float(each["value"][1]) for each in found}

    def series(
        self, expression: str, *, start: float, end: float, step: float
    ) -> list[tuple[dict[str, str], list[tuple[float, float]]]]:
        """An expression over a span of time: labels and points of each series."""
        found = self._get("query_range", query=expression, start=start, end=end, step=step)["result"]
        return [
            (each["metric"], [(float(when), float(value)) for when, value in each["values"]])
            for each in found
        ]

    def exemplars(self, selector: str) -> list[dict[str, str]]:
        """Labels of the exemplars of series, oldest first."""
        end = time.time()
        found = self._get("query_exemplars", query=selector, start=end - 3600, end=end)
        return [each["labels"] for series in found for each in series["exemplars"]]

    def firing(self, alert: str) -> list[dict[str, str]]:
        """Labels of an alert's instances that fire."""
        return [
            {name: value for name, value in each["labels"].items() if name not in {"alertname", "severity"}}
            for each in self._get("alerts")["alerts"]
            if each["labels"]["alertname"] == alert and each["state"] == "firing"
        ]

    def version(self) -> str:
        """Its name and version."""
        return f"Prometheus {self._get('status/buildinfo')['version']}"

    def rules(self) -> list[dict[str, Any]]:
        """Every rule with its health and last error."""
        groups = self._get("rules")["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def targets(self) -> list[dict[str, Any]]:
        """What is scraped, with labels and health."""
        found: list[dict[str, Any]] = self._get("targets", state="active")["activeTargets"]
        return found

    def await_firing(self, alert: str, *, within: float, **labels: str) -> dict[str, str]:
        """Wait until an alert fires with these labels. AssertionError shows what its expression gave."""

        def look() -> list[dict[str, str]]:
            return [each for each in self.firing(alert) if labels.items() <= each.items()]

        found: list[dict[str, str]] = self._await(look, within=within, what=f"{alert} {dict(labels)}")
        return found[0]

    def await_silence(self, alert: str, *, within: float) -> None:
        """Wait until no instance of an alert fires."""
        self._await(lambda: not self.firing(alert), within=within, what=f"silence of {alert}")

    def await_value(self, expression: str, holds: Callable[[float], bool], *, within: float) -> float:
        """Wait until an expression of one series has a value as wanted; returns it."""
        last: list[dict[str, float]] = [{}]

        def look() -> bool:
            last[0] = self.values(expression)
            return len(last[0]) == 1 and holds(next(iter(last[0].values())))

        try:
            wait_for(look, within=within, every=0.5)
        except AssertionError as error:
            raise AssertionError(f"{expression} stays at {last[0]}") from error
        return next(iter(last[0].values()))

    def _await(self, look: Callable[[], Any], *, within: float, what: str) -> Any:
        try:
            return wait_for(look, within=within, what=what, every=0.5)
        except AssertionError as error:
            rules = [
                {name: rule[name] for name in ("name", "state", "query", "alerts", "health")}
                for rule in self.rules()
                if rule["name"] in what
            ]
            raise AssertionError(f"{error}: {json.dumps(rules, indent=1)}") from error

    def _get(self, path: str, **query: Any) -> Any:
        assert self._child is not None
        self._child.check_running()
        answer = self._http.get(f"{self._url}/api/v1/{path}", params=query)
        body = answer.json()
        if body["status"] != "success":
            raise ValueError(f"{path} {query}: {body['error']}")
        return body["data"]

    def _start(self, config: Path) -> None:
        for _ in range(PORT_TRIES):
            (port,) = free_ports(1)
            self._url = f"http://127.0.0.1:{port}"
            argv = [
                prometheus_program(),
                f"--config.file={config}",
                f"--storage.tsdb.path={self._folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
                "--enable-feature=exemplar-storage",
                "--log.level=warn",
            ]
            child = self._child = Child(
                PROGRAM, argv, log=self._folder / "prometheus.log", env={"GOGC": "200"}
            )
            end = time.monotonic() + START_SECONDS
            while child.running and time.monotonic() < end:
                if self._ready():
                    return
                time.sleep(0.1)
            if child.running or "address already in use" not in child.output():
                child.kill()
                break
        raise ChildFailed(f"{PROGRAM} does not start: {self._child.last_words() if self._child else ''}")

    def _ready(self) -> bool:
        try:
            return self._http.get(f"{self._url}/-/ready").is_success
        except httpx.TransportError:  # it does not listen yet
            return False


def written(labels: Labels) -> str:
    """Labels as `a=b,c=d`, the metric's name left out."""
    return ",".join(f"{name}={labels[name]}" for name in sorted(labels) if name != "__name__")


def prometheus_program() -> str:
    """Path of Prometheus, installed from Debian when it is missing. PackagesMissing says what to do."""
    if shutil.which(PROGRAM) is None:
        ensure_packages(PROGRAM)
    found = shutil.which(PROGRAM)
    if found is None:
        raise ChildFailed(f"{PROGRAM} is not on PATH")
    return found
