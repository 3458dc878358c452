"""What an engine is denied and whom it runs as, in the words of Kubernetes' Pod Security Standards."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Final

from pydantic import Field

from noctaya_api.v1alpha1.base import KubeModel, Rule
from noctaya_api.v1alpha1.scalars import Int64

VOLUME_GROUP: Final = 65532
"""Group that caches belong to unless another one is given; the one that the prewarm Job writes as."""
_HIGHEST: Final = 2**31 - 1


class PodSecurityLevel(StrEnum):
    """Levels that an engine can be held to."""

    BASELINE = "baseline"
    RESTRICTED = "restricted"


Id = Annotated[Int64, Field(ge=0, le=_HIGHEST)]


class PodSecurity(KubeModel):
    """What the engine is denied, and whom it runs as."""

    rules: ClassVar = (
        Rule(
            cel="self.level != 'restricted' || !has(self.runAsUser) || self.runAsUser > 0",
            holds=lambda asked: asked.level is not PodSecurityLevel.RESTRICTED or asked.run_as_user != 0,
            message="runAsUser can't be 0 at the level restricted",
        ),
    )

    level: PodSecurityLevel = Field(
        default=PodSecurityLevel.BASELINE,
        description="restricted: never root, no capability. Then namespaces that enforce restricted take the "
        "Pods.",
    )
    run_as_user: Id | None = Field(
        default=None,
        description="User of the engine. The image's own if absent; at the level restricted that has to be a "
        "number other than 0. HOME is /tmp for this user unless container.env says otherwise.",
    )
    run_as_group: Id | None = Field(
        default=None, description="Group of the engine; the image's own if absent."
    )
    fs_group: Id | None = Field(
        default=None,
        description=f"Group that the cache belongs to, for the engine and for prewarming; {VOLUME_GROUP} if "
        "absent.",
    )

    @property
    def volume_group(self) -> int:
        """Group that the volumes belong to."""
        return VOLUME_GROUP if self.fs_group is None else self.fs_group
