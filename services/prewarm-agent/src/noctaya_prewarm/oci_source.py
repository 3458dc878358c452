"""oci:// sources as the agent needs them."""

from noctaya_api.model_source import ModelSource, ModelSourceError, Scheme, parse_model_source

from noctaya_prewarm.errors import BadSettings


def parse_oci_source(source: str) -> ModelSource:
    """The parsed source; a tag instead of a digest is accepted, since the operator decides about tags.

    Raises:
        BadSettings: it is no oci:// URI.
    """
    try:
        model = parse_model_source(source, allow_tags=True)
    except ModelSourceError as error:
        raise BadSettings(str(error)) from error
    if model.scheme is not Scheme.OCI:
        raise BadSettings(f"{source} is not an oci:// source")
    return model


def registry_of(model: ModelSource) -> tuple[str, str]:
    """Host (with port) and repository of an oci:// source."""
    registry, _, rest = model.reference.partition("/")
    repository = rest.partition("@")[0].partition(":")[0]
    return registry, repository


def same_source(one: str, other: str) -> bool:
    """Whether two URIs name the same content: they are equal, or both pin the same OCI digest."""
    if one == other:
        return True
    digests = [_digest_of(uri) for uri in (one, other)]
    return digests[0] == digests[1] != ""


def _digest_of(uri: str) -> str:
    try:
        model = parse_model_source(uri)
    except ModelSourceError:
        return ""
    return model.digest
