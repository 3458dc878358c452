"""`kubectl port-forward` as a child process: the endpoint on loopback, whatever kind of cluster it is in."""

import re
import time
from pathlib import Path

from noctaya_apiserver import Child
from noctaya_cluster import Kubectl

from noctaya_demo.place import PlaceFailed

WITHIN = 30.0
POLL = 0.02
ADDRESS = re.compile(r"Forwarding from (127\.0\.0\.1:\d+)")


class Forward:
    """From a port of this machine to port 80 of a Service; a context manager that gives itself.

    Args:
        kubectl: of the cluster.
        namespace: of the Service.
        service: its name.
        folder: for what kubectl prints.
        port: here; 0 for any that is free.
    """

    def __init__(
        self, kubectl: Kubectl, *, namespace: str, service: str, folder: Path, port: int = 0
    ) -> None:
        self._log = folder / f"port-forward-{service}.log"
        self._argv = [
            *(*kubectl.prefix, "--namespace", namespace, "port-forward", f"service/{service}"),
            *(f"{port or ''}:80", "--address=127.0.0.1"),
        ]
        self._child: Child | None = None
        self.address = ""
        """Host and port, once it runs."""

    def __enter__(self) -> "Forward":
        self._child = Child("kubectl port-forward", self._argv, log=self._log)
        try:
            self.address = self._await_address(self._child)
        except BaseException:
            self._child.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._child is not None:
            self._child.stop()

    @property
    def running(self) -> bool:
        """Whether it still forwards."""
        return self._child is not None and self._child.running

    def _await_address(self, child: Child) -> str:
        deadline = time.monotonic() + WITHIN
        while not (found := ADDRESS.search(child.output())):
            if not child.running or time.monotonic() > deadline:
                raise PlaceFailed(f"kubectl port-forward: {child.last_words(1) or 'it said nothing'}")
            time.sleep(POLL)
        return found[1]
