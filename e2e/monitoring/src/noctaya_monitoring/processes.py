"""The processes behind Pods: with the environment that the operator rendered, on ports of the kernel."""

from __future__ import annotations

import base64
import json
import re
import shutil
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from noctaya_api import names
from noctaya_apiserver.child import Child, ChildFailed
from noctaya_apiserver.client import Object, wait_for

MOUNTS: Final = "/var/run/noctaya"
"""Where the operator mounts what gateways and scalers read."""
ANY: Final = "127.0.0.1:0"
NOTHING: Final = "http://127.0.0.1:1"
"""A Service without endpoints: connections are refused."""
QUICK: Final = {names.ENV_READY_GRACE: "1s", names.ENV_LAME_DUCK: "0s"}
"""What nobody wants to wait for here; no manifest sets these."""
START_SECONDS: Final = 60.0
GATEWAY: Final = "noctaya-gateway"
SCALER: Final = "noctaya-aggregate-scaler"
STUB: Final = "noctaya-model-stub"


class Server:
    """One running program that says where it listens.

    Args:
        program: one of ours.
        arguments: of the program.
        log: file for its output.
        env: variables over our own.
    """

    def __init__(
        self, program: str, *arguments: str, log: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.child = Child(log.stem, [_found(program), *arguments], log=log, env=env)
        self._program = program

    def http(self) -> int:
        """The port of its HTTP. ChildFailed when it ends before it listens."""
        return self._port(partial(_http, self._program))

    def grpc(self) -> int:
        """The port of its ExternalScaler."""
        return self._port(_grpc)

    def words(self, pattern: str) -> re.Match[str]:
        """The first place in its output that a pattern matches, once there is one."""

        def look() -> re.Match[str] | None:
            found = re.search(pattern, self.child.output())
            if found is None:
                self.child.check_running()
            return found

        found = wait_for(look, within=START_SECONDS, what=f"{pattern} from {self.child.name}")
        assert found is not None
        return found

    def _port(self, read: Any) -> int:
        if self._program == STUB:
            return int(self.words(r"on port (\d+)")[1])

        def look() -> int | None:
            records = (line for line in self.child.output().splitlines() if line.endswith("}"))
            found = next((port for line in records if (port := read(json.loads(line)))), None)
            if found is None:
                self.child.check_running()
            return found

        found = wait_for(look, within=START_SECONDS, what=f"a port of {self.child.name}")
        assert found is not None
        return found


def endpoints(mounts: Path) -> Path:
    """The file that a service's gateways find their backend in."""
    return mounts / "backends"


def environment(deployment: Object, *, mounts: Path, member: str, aggregator: int) -> dict[str, str]:
    """What a gateway or scaler of this Deployment is started with.

    Args:
        deployment: as the operator made it.
        mounts: folder instead of `/var/run/noctaya`.
        member: instead of the Pod's uid.
        aggregator: port of the aggregate scaler; 0 where there is none.
    """
    entries = deployment["spec"]["template"]["spec"]["containers"][0]["env"]
    rendered = {each["name"]: each.get("value", member) for each in entries}
    here = {name: value.replace(MOUNTS, str(mounts)) for name, value in rendered.items()}
    instead = {
        names.ENV_BACKEND_URL: NOTHING,
        names.ENV_BACKEND_ENDPOINTS: endpoints(mounts).as_uri(),
        names.ENV_LISTEN_ADDR: ANY,
        names.ENV_AGGREGATOR_LISTEN_ADDR: ANY,
        names.ENV_SCALER_LISTEN_ADDR: ANY,
        names.ENV_DEMAND_AGGREGATOR_URL: f"http://127.0.0.1:{aggregator}{names.PATH_DEMAND}",
    }
    return here | {name: value for name, value in instead.items() if name in here} | QUICK


def mount(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write what a Pod has mounted, below `folder`."""
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())


def token_of(secret: Object) -> str:
    """The demand token of a Secret of ours."""
    return base64.b64decode(secret["data"][names.DEMAND_TOKEN_KEY]).decode()


def _http(program: str, record: Mapping[str, Any]) -> int | None:
    if program == SCALER:
        return record.get("http_port")
    return record.get("port") if record.get("listener") == "http" else None


def _grpc(record: Mapping[str, Any]) -> int | None:
    return record.get("grpc_port") or (record.get("port") if record.get("listener") == "scaler" else None)


def _found(program: str) -> str:
    beside = Path(sys.executable).with_name(program)
    found = str(beside) if beside.exists() else shutil.which(program)
    if found is None:
        raise ChildFailed(f"{program} is not installed")
    return found
