"""Issue 6 on a cluster: a model of a bucket, and a cache that outlives its service."""

from __future__ import annotations

from noctaya_scenarios import manifests
from noctaya_scenarios.delivery import (
    DELIVERY_SECONDS,
    MIB,
    SHARED,
    STAYS,
    everything_told,
    hashes_of,
    model,
    served_files,
)
from noctaya_scenarios.lab import Lab
from noctaya_scenarios.model_places import model_places
from noctaya_scenarios.scene import Scene

FILES = model(size=3 * MIB + 7, seed=8)
KEY, SECRET = "access-key-of-the-test", "secret-key-of-the-test"


def test_a_model_of_a_bucket_is_kept_when_its_service_goes_and_not_fetched_again(
    lab: Lab, scene: Scene
) -> None:
    lab.load_delivery_images()
    with model_places(lab.api, scene.namespace, reach=lab.reach) as places:
        places.bucket(
            "models", {f"team/{path}": content for path, content in FILES.items()}, keys={KEY: SECRET}
        )
        scene.secret("bucket", AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET)
        source = {
            "uri": "s3://models/team",
            "endpoint": places.s3_endpoint,
            "secretRef": {"name": "bucket"},
            "files": {"exclude": ["*.md"]},
        }
        spec = manifests.service_spec(
            scene.runtime(), model={"source": source}, cache={**SHARED, "retain": True}, scaling=STAYS
        )
        scene.create(**spec)
        scene.await_idle(within=DELIVERY_SECONDS)
        assert SECRET not in everything_told(scene)
        fetched = len(places.requests("s3-get"))
        scene.delete()
        scene.await_gone("apps/v1/deployments", "chat", within=DELIVERY_SECONDS)
        scene.await_gone("batch/v1/jobs", "chat-prewarm", within=DELIVERY_SECONDS)
        assert scene.get("v1/persistentvolumeclaims", "chat-cache") is not None
        scene.create(**spec)
        scene.await_idle(within=DELIVERY_SECONDS)
        assert scene.client().ask().status == 200
        assert served_files(lab.access, scene) == hashes_of(FILES)
        assert len(places.requests("s3-get")) == fetched, "what is there is not fetched again"
