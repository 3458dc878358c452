"""The parts of an LLMService that say where its weights come from and where they are kept."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from pydantic import Field

from noctaya_api.model_source import FileFilter, ModelSource, parse_model_source
from noctaya_api.v1alpha1.base import KubeModel, Rule
from noctaya_api.v1alpha1.core import LocalObjectReference
from noctaya_api.v1alpha1.scalars import Bool, GoDuration, NonEmpty, Quantity

_HUB_OR_BUCKET: Final = "(?i)^(hf|huggingface|modelscope|s3)://"
Glob = Annotated[str, Field(min_length=1, max_length=256)]
Globs = Annotated[list[Glob], Field(max_length=64)]


def _begins(uri: str, pattern: str) -> bool:
    return re.match(pattern, uri) is not None


class CacheStrategy(StrEnum):
    """Where downloaded weights are kept."""

    NODE_LOCAL_PVC = "NodeLocalPVC"
    HOST_PATH = "HostPath"
    SHARED_PVC = "SharedPVC"
    BAKED_IMAGE = "BakedImage"
    NONE = "None"


class SourceFiles(KubeModel):
    """Which files of a repository or bucket are downloaded."""

    include: Globs = Field(
        default_factory=list,
        exclude_if=lambda value: not value,
        description="Shell patterns over whole paths, for example *.safetensors; a file that matches none is "
        "left out. All files if absent.",
    )
    exclude: Globs = Field(
        default_factory=list,
        exclude_if=lambda value: not value,
        description="Shell patterns of files that are left out even if included.",
    )


class InlineSource(KubeModel):
    """A model named by its URI."""

    rules: ClassVar = (
        Rule(
            cel="!has(self.secretRef) || !self.uri.matches('(?i)^pvc://')",
            holds=lambda source: source.secret_ref is None or not _begins(source.uri, "(?i)pvc://"),
            message="secretRef is not used with a pvc:// uri",
        ),
        Rule(
            cel="!has(self.secretRef) || (has(self.secretRef.name) && size(self.secretRef.name) > 0)",
            holds=lambda source: source.secret_ref is None or source.secret_ref.name != "",
            message="secretRef.name must not be empty",
        ),
        Rule(
            cel="!has(self.endpoint) || !self.uri.matches('(?i)^pvc://')",
            holds=lambda source: source.endpoint is None or not _begins(source.uri, "(?i)pvc://"),
            message="endpoint is not used with a pvc:// uri",
        ),
        Rule(
            cel="!has(self.region) || self.uri.matches('(?i)^s3://')",
            holds=lambda source: source.region is None or _begins(source.uri, "(?i)s3://"),
            message="region is only used with an s3:// uri",
        ),
        Rule(
            cel=f"!has(self.files) || self.uri.matches('{_HUB_OR_BUCKET}')",
            holds=lambda source: source.files is None or _begins(source.uri, _HUB_OR_BUCKET),
            message="files is only used with hf://, modelscope:// and s3:// uris",
        ),
        Rule(
            cel="!has(self.allowTags) || !self.allowTags || self.uri.matches('(?i)^oci://')",
            holds=lambda source: not source.allow_tags or _begins(source.uri, "(?i)oci://"),
            message="allowTags is only used with an oci:// uri",
        ),
    )

    uri: NonEmpty = Field(
        description="Where the weights are: hf://org/name[@revision], huggingface://..., "
        "modelscope://org/name[@revision], s3://bucket[/prefix], pvc://claim[/path] or "
        "oci://registry/repository@sha256:digest."
    )
    secret_ref: LocalObjectReference | None = Field(
        default=None,
        description="Secret in the namespace of the service with the credentials. oci://: type "
        "kubernetes.io/dockerconfigjson. hf:// and modelscope://: key token. s3://: keys AWS_ACCESS_KEY_ID, "
        "AWS_SECRET_ACCESS_KEY and, where needed, AWS_SESSION_TOKEN. A key ca.crt adds certificate "
        "authorities.",
    )
    endpoint: Annotated[str, Field(max_length=1024, pattern=r"^https?://[^/?#@\s]+(/[^?#@\s]*)?$")] | None = (
        Field(
            default=None,
            description="Where the hub or the S3 service is reached, for example a mirror. oci://: only "
            "http:// with the registry of the uri, for a registry without TLS.",
        )
    )
    region: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,63}$")] | None = Field(
        default=None, description="Region of the S3 service; us-east-1 if absent."
    )
    files: SourceFiles | None = Field(
        default=None, description="Which files are downloaded ahead; all of them if absent."
    )
    allow_tags: Bool = Field(
        default_factory=bool,
        exclude_if=lambda value: not value,
        description="Accept an oci:// uri with a tag instead of a digest. The first download resolves it; "
        "the digest "
        "is kept in status.model from then on, whatever becomes of the tag. Off unless set.",
    )

    def parsed(self) -> ModelSource:
        """What the URI means. Raises ModelSourceError."""
        return parse_model_source(
            self.uri,
            has_secret=self.secret_ref is not None,
            allow_tags=self.allow_tags,
            endpoint=self.endpoint or "",
        )

    @property
    def file_filter(self) -> FileFilter:
        """Which files are meant."""
        if self.files is None:
            return FileFilter()
        return FileFilter(include=tuple(self.files.include), exclude=tuple(self.files.exclude))


class Model(KubeModel):
    """What is served."""

    rules: ClassVar = (
        Rule(
            cel="has(self.source) != (has(self.catalogRef) && size(self.catalogRef) > 0)",
            holds=lambda model: (model.source is not None) != bool(model.catalog_ref),
            message="exactly one of source and catalogRef must be given",
        ),
    )

    source: InlineSource | None = Field(default=None, description="The model, named by its URI.")
    catalog_ref: str | None = Field(
        default=None,
        description="Reserved for a later version; a service that uses it is reported as degraded.",
    )


class Cache(KubeModel):
    """Where weights are kept between starts."""

    rules: ClassVar = (
        Rule(
            cel="!has(self.claimName) || (has(self.strategy) && self.strategy == 'SharedPVC')",
            holds=lambda cache: cache.claim_name is None or cache.strategy is CacheStrategy.SHARED_PVC,
            message="claimName needs the strategy SharedPVC",
        ),
        Rule(
            cel="!has(self.claimName) || !(has(self.size) || has(self.storageClassName) || "
            "(has(self.retain) && self.retain))",
            holds=lambda cache: (
                cache.claim_name is None
                or (cache.size is None and cache.storage_class_name is None and not cache.retain)
            ),
            message="with claimName the claim is not the service's: size, storageClassName and retain "
            "do not apply",
        ),
        Rule(
            cel="!has(self.prewarmTimeout) || duration(self.prewarmTimeout) > duration('0s')",
            holds=lambda cache: cache.prewarm_timeout is None or cache.prewarm_timeout.nanoseconds > 0,
            message="prewarmTimeout must be a duration greater than zero, such as 2h",
        ),
    )

    strategy: CacheStrategy = Field(
        default=CacheStrategy.NODE_LOCAL_PVC,
        description="NodeLocalPVC: a ReadWriteOnce claim. SharedPVC: a ReadWriteMany claim for replicas "
        "on several nodes. "
        "HostPath: a directory of the node. None: nothing is kept. BakedImage is reserved.",
    )
    size: Quantity | None = Field(
        default=None,
        description="Size of the claim; 50Gi if absent. It can grow where the StorageClass allows expansion.",
    )
    storage_class_name: str | None = Field(
        default=None, description="StorageClass of the claim; absent or empty means the cluster's default."
    )
    claim_name: (
        Annotated[
            str,
            Field(
                max_length=253, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
            ),
        ]
        | None
    ) = Field(
        default=None,
        description="An existing ReadWriteMany claim to use instead of one of the service's own. Services "
        "that share "
        "a claim share each model that they both name: it is downloaded once.",
    )
    prewarm: Bool = Field(
        default_factory=bool,
        exclude_if=lambda value: not value,
        description="Download the weights once, ahead of the first start and without an accelerator. "
        "Off unless set; always on for oci:// and s3:// models.",
    )
    prewarm_timeout: GoDuration | None = Field(
        default=None, description="Longest time that the download may take; 12h if absent."
    )
    replace: Bool = Field(
        default_factory=bool,
        exclude_if=lambda value: not value,
        description="Replace what can't be changed: the download when the model changed, and, while no "
        "replica runs, "
        "the claim when its settings changed and it can't follow. Weights that are replaced are deleted. Off "
        "unless set: a change is then refused and says why.",
    )
    retain: Bool = Field(
        default_factory=bool,
        exclude_if=lambda value: not value,
        description="Keep the claim, and so the weights, when the service is deleted. Off unless set.",
    )
