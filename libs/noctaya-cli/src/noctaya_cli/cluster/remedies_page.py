"""docs/troubleshooting.md, from the table of remedies: `python -m noctaya_cli.cluster.remedies_page`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from noctaya_api.conditions import KeepReason, ObservationReason, Reason, StepReason

from noctaya_cli.cluster.remedies import CommandReason, remedy

INTRODUCTION = """\
# Troubleshooting

<!-- Generated from noctaya_cli.cluster.remedies; write there and run
     python -m noctaya_cli.cluster.remedies_page --output docs/troubleshooting.md -->

Two commands find most causes, with your kubeconfig and no rights but reading:

```sh
noctaya explain SERVICE     # where the last cold start spent its time, what is wrong now, what to do
noctaya doctor              # KEDA, operator, rights, DNS, storage, certificates, every service
```

`noctaya status -A` lists all services, those with a problem first. By hand: `kubectl describe llmservice
SERVICE` shows the conditions; their reasons are below. `SERVICE` stands for the name of the service.
"""

SECTIONS = (
    ("The model's Pods", ObservationReason),
    ("Autoscaling and weights", Reason),
    ("What `noctaya` finds itself", CommandReason),
    ("Kept awake or asleep", KeepReason),
    ("What the operator could not do", StepReason),
)

CLIENTS = (
    (
        "401 `invalid_api_key`",
        "The key in the Secret of `spec.endpoint.authentication`; a new one counts once the kubelet has "
        "written it.",
    ),
    (
        "429 `queue_full`",
        "`spec.endpoint.maxQueue` requests are admitted already, at each gateway: raise it, or "
        "`spec.scaling.max`. `noctaya status` shows it while it lasts.",
    ),
    (
        "429 `rate_limit_exceeded`, `concurrency_limit_exceeded`",
        "The limits of the client's key: its line in the key Secret, or "
        "`spec.endpoint.authentication.limits`.",
    ),
    (
        "413 `request_too_large`, 408 `body_timeout`",
        "A body above `NOCTAYA_MAX_BODY_BYTES`, or one that comes too slowly: a proxy in between?",
    ),
    ("503 `cold_start`", "The service is cold and the request may not wait: mode `reject`, or a GET."),
    (
        "503 `activation_timeout`",
        "The model was not ready within `spec.scaling.activationTimeout`: `noctaya explain SERVICE` shows "
        "which phase took it.",
    ),
    ("503 `activation_failed`", "The activation can't succeed; the message has the reason, see below."),
    (
        "503 `prewarming`",
        "The weights are being downloaded: `noctaya explain SERVICE` shows how far; `Retry-After` is the "
        "estimate.",
    ),
    (
        "503 `buffer_full`",
        "The gateway holds `NOCTAYA_MAX_BUFFERED_BYTES` of bodies for requests that wait: more gateways, or "
        "a smaller `spec.endpoint.maxQueue`.",
    ),
    ("503 `draining`", "That gateway is being stopped; a retry reaches another, or its successor."),
    (
        "503 `asleep`",
        "Somebody put the service to sleep: `noctaya wake SERVICE` or `noctaya unpin SERVICE` ends that.",
    ),
    (
        "503 `authentication_unavailable`",
        "The gateway's key file can't be read: the Secret or its key is gone.",
    ),
    (
        "502 `backend_unavailable`, `backend_interrupted`",
        "The model server died: `kubectl logs -c serving --previous POD`.",
    ),
)


def page() -> str:
    """The whole page."""
    answers = ["| Answer | Look at |", "|---|---|", *(f"| {code} | {cause} |" for code, cause in CLIENTS)]
    parts = [INTRODUCTION, "## What clients see\n", "\n".join(answers) + "\n"]
    for title, reasons in SECTIONS:
        parts.append(f"## {title}\n")
        parts.append("\n".join(_rows(map(str, reasons))) + "\n")
    return "\n".join(parts)


def _rows(reasons: Iterable[str]) -> Iterable[str]:
    yield "| Reason | Meaning | What to do |"
    yield "|---|---|---|"
    several: dict[tuple[str, str], list[str]] = {}
    for reason in reasons:
        if (advice := remedy(reason)) is not None:
            several.setdefault((advice.meaning, advice.action), []).append(reason)
    for (meaning, action), names in several.items():
        yield f"| {', '.join(f'`{name}`' for name in names)} | {meaning} | {action} |"


def main() -> int:
    """Write the page, or with `--check` compare; exit code 1 when it differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--check", action="store_true")
    wanted = parser.parse_args()
    text = page()
    if wanted.check:
        same = wanted.output.is_file() and wanted.output.read_text(encoding="utf-8") == text
        if not same:
            print(f"{wanted.output} is not what noctaya_cli.cluster.remedies_page gives", file=sys.stderr)
        return 0 if same else 1
    wanted.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
