"""What a test of the operator does all the time: make services, wait for a status, look at objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from .client import WAIT_SECONDS, ApiClient, Object, wait_for
from .control_plane import ControlPlane
from .follower import Follower
from .keda_stand_in import SCALED_OBJECTS, FakeKeda
from .nodes import FakeNode

API: Final = "serving.noctaya.io/v1alpha1"
COLLECTIONS: Final = (
    ("apps/v1", "deployments"),
    ("v1", "services"),
    ("v1", "persistentvolumeclaims"),
    ("v1", "secrets"),
    ("batch/v1", "jobs"),
    ("policy/v1", "poddisruptionbudgets"),
    ("keda.sh/v1alpha1", "scaledobjects"),
)
"""The kinds that the operator makes."""


class World:
    """One namespace of one API server, seen by its administrator."""

    def __init__(self, api: ApiClient, namespace: str) -> None:
        self.api = api
        self.namespace = namespace

    def service(self, name: str = "chat", **spec: Any) -> Object:
        """An LLMService manifest of this namespace; keyword arguments are fields of its spec."""
        base = {"model": {"source": {"uri": "hf://org/model"}}, "runtime": {"name": "engine"}}
        return {
            "apiVersion": API,
            "kind": "LLMService",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {**base, **spec},
        }

    def create(self, name: str = "chat", **spec: Any) -> Object:
        """Make a service."""
        return self.api.create(self.service(name, **spec))

    def path(self, name: str = "chat") -> str:
        """A service's path."""
        return f"/apis/{API}/namespaces/{self.namespace}/llmservices/{name}"

    def change(self, name: str = "chat", **spec: Any) -> Object:
        """Merge into a service's spec."""
        changed: Object = self.api.merge(self.path(name), {"spec": spec})
        return changed

    def delete(self, name: str = "chat", *, propagation: str = "Background") -> None:
        """Delete a service."""
        self.api.delete(self.path(name), propagation=propagation)

    def status(self, name: str = "chat") -> Object:
        """A service's status, empty when there is none."""
        status: Object = self.api.get(self.path(name)).get("status") or {}
        return status

    def condition(self, kind: str, name: str = "chat") -> tuple[str, str]:
        """Status and reason of a condition; blank when it is not there."""
        return condition_of(self.status(name), kind)

    def await_condition(
        self, kind: str, status: str, reason: str, name: str = "chat", *, within: float = WAIT_SECONDS
    ) -> Object:
        """Wait for a condition; returns the whole status. AssertionError shows the last one."""
        return self.await_status(
            lambda found: condition_of(found, kind) == (status, reason), name, within=within
        )

    def await_phase(self, phase: str, name: str = "chat", *, within: float = WAIT_SECONDS) -> Object:
        """Wait for a phase; returns the whole status."""
        return self.await_status(lambda found: found.get("phase") == phase, name, within=within)

    def await_status(
        self, holds: Callable[[Object], bool], name: str = "chat", *, within: float = WAIT_SECONDS
    ) -> Object:
        """Wait until the status of the newest generation is as wanted."""
        last: list[Object] = [{}]

        def look() -> bool:
            found = self.api.get(self.path(name))
            last[0] = found.get("status") or {}
            current = last[0].get("observedGeneration") == found["metadata"]["generation"]
            return current and holds(last[0])

        try:
            wait_for(look, within=within)
        except AssertionError as error:
            raise AssertionError(f"{self.namespace}/{name} stays at {last[0]}") from error
        return last[0]

    def get(self, kind_path: str, name: str) -> Object | None:
        """An object by `group/version/plural`, None when it is not there."""
        return self.api.find(self._path(kind_path, name))

    def await_object(self, kind_path: str, name: str, *, within: float = WAIT_SECONDS) -> Object:
        """Wait until an object is there."""
        found = wait_for(lambda: self.get(kind_path, name), within=within, what=f"{kind_path} {name}")
        assert found is not None
        return found

    def await_gone(self, kind_path: str, name: str, *, within: float = WAIT_SECONDS) -> None:
        """Wait until an object is gone."""
        wait_for(lambda: self.get(kind_path, name) is None, within=within, what=f"{kind_path} {name} gone")

    def objects(self, *, of: str | None = None) -> dict[str, Object]:
        """Everything of the kinds the operator makes, by `plural/name`; `of` a service only."""
        found = {}
        for version, plural in COLLECTIONS:
            for item in self.api.items(self._path(f"{version}/{plural}")):
                owners = item["metadata"].get("ownerReferences") or [{}]
                if of is None or owners[0].get("name") == of:
                    found[f"{plural}/{item['metadata']['name']}"] = item
        return found

    def events(self, name: str = "chat") -> list[Object]:
        """Events about a service, oldest first."""
        found = self.api.items(f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events")
        about = [event for event in found if event["regarding"].get("name") == name]
        return sorted(about, key=lambda event: str(event["eventTime"]))

    def _path(self, kind_path: str, name: str = "") -> str:
        version, _, plural = kind_path.rpartition("/")
        root = "apis" if "/" in version else "api"
        path = f"/{root}/{version}/namespaces/{self.namespace}/{plural}"
        return f"{path}/{name}" if name else path


def condition_of(status: Mapping[str, Any], kind: str) -> tuple[str, str]:
    """Status and reason of a condition; blank when it is not there."""
    for each in status.get("conditions") or []:
        if each["type"] == kind:
            return each["status"], each["reason"]
    return "", ""


def runtime(name: str = "engine", *, image: str = "example.com/engine:1", **spec: Any) -> Object:
    """An InferenceRuntime manifest that needs no accelerator; keyword arguments are fields of its spec."""
    base = {
        "family": "custom",
        "vendor": "cpu",
        "container": {"image": image, "args": ["{{ .Model.Path }}"], "port": {}},
    }
    return {
        "apiVersion": API,
        "kind": "InferenceRuntime",
        "metadata": {"name": name},
        "spec": {**base, **spec},
    }


@contextmanager
def stand_ins(plane: ControlPlane, *, keda: bool = True) -> Iterator[None]:
    """Run the stand-ins for kubelet, scheduler and KEDA."""
    with ExitStack() as stack:
        node = FakeNode(plane.client().request)
        node.register()
        followers = [Follower(plane.client(), "/api/v1/pods", node.seen)]
        if keda:
            followers.append(Follower(plane.client(), SCALED_OBJECTS, FakeKeda(plane.client()).seen))
        for follower in followers:
            follower.start()
            stack.callback(follower.stop)
        yield
