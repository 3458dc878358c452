"""A Kubernetes API server in one asyncio loop, for tests: real HTTP on loopback, and faults on demand.

What it does as the real one does: resourceVersions and a bounded history (410 when it is too old,
`expire_history`), list with paging and selectors, watch with bookmarks and timeouts, optimistic conflicts,
generations, the status subresource, server-side apply with managed fields and field removal, create-time
defaults of the kinds the operator writes, quantities in canonical form, finalizers, delete preconditions,
garbage collection (on request, or at once with `auto_gc=True`). What it does not do: schemas, CEL,
authorization, controllers. The real server is a tier of its own.

    async with FakeApiServer(resources=[*BUILT_IN, SCALED_OBJECTS]) as server:
        client = server.client()                        # KubeClient over HTTP; closed with the server
        client = server.direct_client()                 # KubeClient without sockets: for looptime tests
        server.put(pod)                                 # write any object as is, status included
        server.set_status(PODS, "ns", "name", {...})    # what a kubelet or controller would do
        server.find(PODS, "ns", "name")                 # or None;  server.all(PODS, "ns") for a list
        server.remove(PODS, "ns", "name")
        server.serve(SCALED_OBJECTS); server.withdraw(SCALED_OBJECTS)     # a CRD comes and goes
        server.requests                                 # what was asked; server.writes() without reads
        await server.asked(verb="patch", times=2)       # wait until it was
        server.faults.fail(status=500, times=3, verb="patch", resource=DEPLOYMENTS)
        server.faults.fail(status=429, retry_after=2)   # Retry-After
        server.faults.hang(verb="list")                 # answered never, or when the server stops
        server.faults.cut_watches(PODS)                 # the next event breaks off inside its line
        server.drop_connections(); server.down(); server.up(); server.restart(lose_history=True)
        server.expire_history(); server.collect_garbage()
        server.admission.append(refuse)                 # (verb, resource, object) -> message or None

In pytest the fixture `fake_apiserver` (services/operator/tests/conftest.py) yields a started server with
every kind the operator uses; import with `from fake_apiserver import FakeApiServer`.
"""

from fake_apiserver.faults import Faults
from fake_apiserver.protocol import Recorded
from fake_apiserver.server import FakeApiServer

__all__ = ["FakeApiServer", "Faults", "Recorded"]
