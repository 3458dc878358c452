"""A container of an image under trial: asked from within, so that it needs no network."""

from __future__ import annotations

from typing import Any, Final, Protocol

from noctaya_engine.trials import Trial

PYTHON: Final = "/opt/noctaya/bin/python3"
START_SECONDS: Final = 60


class Container(Protocol):
    """What is used of docker-py's container."""

    def exec_run(self, cmd: list[str]) -> tuple[int, bytes]: ...

    def stop(self, *, timeout: int) -> None: ...

    def wait(self, *, timeout: int) -> dict[str, Any]: ...

    def logs(self, *, stdout: bool = True) -> bytes: ...


class Started:
    """A running container of an image under trial."""

    def __init__(self, container: Container, trial: Trial) -> None:
        self._container = container
        self.trial = trial

    def python(self, program: str) -> str:
        """Run a program with the image's interpreter inside the container; what it printed."""
        code, output = self._container.exec_run([PYTHON, "-I", "-c", program])
        assert code == 0, output.decode()
        return str(output.decode())

    def await_health(self) -> None:
        """Until it answers 200 on loopback; its log is in the failure."""
        url = f"http://127.0.0.1:{self.trial.port}{self.trial.health}"
        program = (
            "import sys, time, urllib.request\n"
            f"deadline = time.monotonic() + {START_SECONDS}\n"
            "while True:\n"
            "    try:\n"
            f"        sys.exit(urllib.request.urlopen({url!r}, timeout=5).status != 200)\n"
            "    except OSError as error:\n"
            "        if time.monotonic() > deadline:\n"
            "            sys.exit(str(error))\n"
            "        time.sleep(0.05)\n"
        )
        code, output = self._container.exec_run([PYTHON, "-I", "-c", program])
        assert code == 0, f"{output.decode()}\n{self.log()}"

    def stop(self, grace: int) -> int:
        """SIGTERM; SIGKILL after `grace` seconds, which shows as 137."""
        self._container.stop(timeout=grace)
        return self.exit_code()

    def exit_code(self) -> int:
        """Of a container that ends."""
        return int(self._container.wait(timeout=START_SECONDS)["StatusCode"])

    def log(self) -> str:
        """Standard output and error."""
        return str(self._container.logs().decode())

    def errors(self) -> str:
        """Standard error alone."""
        return str(self._container.logs(stdout=False).decode())


class Start(Protocol):
    """Starts a container with what its trial says, or with other settings."""

    def __call__(
        self,
        trial: Trial,
        *,
        env: dict[str, str] | None = None,
        arguments: tuple[str, ...] | None = None,
        user: str = "",
    ) -> Started: ...
