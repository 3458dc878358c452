import posixpath
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from noctaya_api.model_source import (
    FileFilter,
    ModelSource,
    ModelSourceError,
    Scheme,
    cache_dir,
    parse_model_source,
)

DIGEST = "0123456789abcdef" * 4


@pytest.mark.parametrize("scheme", ["hf", "huggingface", "HF", "HuggingFace"])
def test_c3_a_hugging_face_repository_is_named_verbatim(scheme: str) -> None:
    uri = f"{scheme}://Qwen/Qwen2.5-7B-Instruct"
    assert parse_model_source(uri) == ModelSource(
        uri=uri, scheme=Scheme.HF, path="Qwen/Qwen2.5-7B-Instruct", env={}
    )


def test_c3_modelscope_adds_the_variable_the_engine_needs() -> None:
    uri = "modelscope://Qwen/Qwen3-8B"
    assert parse_model_source(uri) == ModelSource(
        uri=uri, scheme=Scheme.MODELSCOPE, path="Qwen/Qwen3-8B", env={"VLLM_USE_MODELSCOPE": "true"}
    )


@pytest.mark.parametrize(
    ("uri", "path", "revision"),
    [
        ("hf://org/name@main", "org/name", "main"),
        ("hf://org/name@refs/pr/7", "org/name", "refs/pr/7"),
        ("hf://org/name@v1.0", "org/name", "v1.0"),
        ("modelscope://org/name@0123abc", "org/name", "0123abc"),
        ("hf://gpt2@a@b", "gpt2", "a@b"),
        ("hf://a://b", "a://b", ""),
        ("hf://org/name with space", "org/name with space", ""),
    ],
)
def test_m3_a_hub_source_may_name_a_revision(uri: str, path: str, revision: str) -> None:
    source = parse_model_source(uri)
    assert (source.path, source.revision, source.is_hub) == (path, revision, True)


@pytest.mark.parametrize(
    "revision",
    [
        "",
        "..",
        "a..b",
        "../../x",
        "/a",
        "a/",
        "-x",
        ".a",
        "a b",
        "a\nb",
        "a\\b",
        "a//b",
        "a~1",
        "a^",
        "a:b",
        "x.lock",
    ],
)
def test_m3_a_revision_that_git_refuses_is_refused(revision: str) -> None:
    with pytest.raises(ModelSourceError, match="revision"):
        parse_model_source(f"hf://org/name@{revision}")


@pytest.mark.parametrize(
    ("uri", "claim", "subpath", "path"),
    [
        ("pvc://models", "models", "", "/models"),
        ("pvc://models/", "models", "", "/models"),
        ("pvc://models/.", "models", "", "/models"),
        ("pvc://team.models/qwen/7b", "team.models", "qwen/7b", "/models/qwen/7b"),
        ("PVC://m/Model.gguf", "m", "Model.gguf", "/models/Model.gguf"),
        ("pvc://m/..a", "m", "..a", "/models/..a"),
    ],
)
def test_c3_a_claim_is_mounted_and_its_path_joined(uri: str, claim: str, subpath: str, path: str) -> None:
    source = parse_model_source(uri)
    assert source == ModelSource(uri=uri, scheme=Scheme.PVC, path=path, claim=claim, subpath=subpath, env={})
    assert not source.is_hub
    assert source.ready_marker == ""


@pytest.mark.parametrize("repository", ["model", "team/model", "a.b/c_d/e-f", "0/1"])
@pytest.mark.parametrize("registry", ["ghcr.io", "localhost:5000", "r"])
def test_c3_an_oci_artifact_is_staged_under_its_digest(registry: str, repository: str) -> None:
    reference = f"{registry}/{repository}@sha256:{DIGEST}"
    uri = f"oci://{reference}"
    path = f"/cache/oci/sha256-{DIGEST}"
    source = parse_model_source(uri, has_secret=True)
    assert source == ModelSource(
        uri=uri, scheme=Scheme.OCI, path=path, reference=reference, digest=DIGEST, env={}
    )
    assert source.ready_marker == f"{path}/.noctaya-ready"


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "org/name",
        "://x",
        "hf:/x",
        "hf://",
        "hf://@main",
        "hf://a\x00b",
        "gs://bucket/key",
        "s3://",
        "s3://ab",
        "s3://Bucket",
        "s3://-ab/x",
        "s3://a..b/x",
        "s3://bucket//a",
        "s3://bucket/a//b",
        "s3://bucket/../a",
        "s3://bucket/./a",
        "s3://bucket/.",
        "s3://bucket/a\x00",
        f"s3://{'a' * 64}",
        "oci://ghcr.io/a:",
        "oci://ghcr.io/a:-x",
        "https://huggingface.co/a/b",
        " hf://a",
        "pvc://",
        "pvc:///x",
        "pvc://c/../x",
        "pvc://c/..",
        "pvc://c//x",
        "pvc://c//",
        "pvc://c/x/",
        "pvc://c/./x",
        "pvc://c/a/../b",
        "pvc://c/a\nb",
        "pvc://Claim",
        "pvc://-c",
        "pvc://c_d",
        f"pvc://{'a' * 254}",
        "oci://ghcr.io/a",
        "oci://ghcr.io/a:latest",
        f"oci://ghcr.io/a:latest@sha256:{DIGEST}",
        f"oci://ghcr.io/a@sha256:{DIGEST[:-1]}",
        f"oci://ghcr.io/a@sha256:{DIGEST}0",
        f"oci://ghcr.io/a@sha256:{DIGEST}\n",
        f"oci://ghcr.io/a@sha256:{DIGEST.upper()}",
        f"oci://ghcr.io/a@sha512:{DIGEST}",
        f"oci://GHCR.io/a@sha256:{DIGEST}",
        f"oci://ghcr.io/A@sha256:{DIGEST}",
        f"oci://ghcr.io/a/../b@sha256:{DIGEST}",
        f"oci://ghcr..io/a@sha256:{DIGEST}",
        f"oci://ghcr.io/a..b@sha256:{DIGEST}",
        f"oci://ghcr.io/a//b@sha256:{DIGEST}",
        f"oci://ghcr.io/a-@sha256:{DIGEST}",
        f"oci://ghcr.io@sha256:{DIGEST}",
        f"oci://ghcr.io:0/a@sha256:{DIGEST}",
        f"oci://ghcr.io:65536/a@sha256:{DIGEST}",
        f"oci://ghcr.io:99999999/a@sha256:{DIGEST}",
        f"oci://ghcr.io:/a@sha256:{DIGEST}",
    ],
)
def test_c4_what_is_not_a_model_uri_is_refused(uri: str) -> None:
    with pytest.raises(ModelSourceError):
        parse_model_source(uri)


def test_c4_a_claim_takes_no_secret_and_no_endpoint() -> None:
    with pytest.raises(ModelSourceError, match="secretRef"):
        parse_model_source("pvc://c", has_secret=True)
    with pytest.raises(ModelSourceError, match="endpoint"):
        parse_model_source("pvc://c", endpoint="https://x")


@pytest.mark.parametrize("uri", ["hf://a/b", "modelscope://a/b", "s3://bucket"])
def test_m3_every_source_from_a_network_takes_a_secret_and_an_endpoint(uri: str) -> None:
    source = parse_model_source(uri, has_secret=True, endpoint="https://mirror.example.com/hub")
    assert source.endpoint == "https://mirror.example.com/hub"


@pytest.mark.parametrize(
    "endpoint", ["mirror", "ftp://m", "https://", "https://u:p@m", "https://m?a=b", "https://m #"]
)
def test_m3_an_endpoint_is_a_plain_url(endpoint: str) -> None:
    with pytest.raises(ModelSourceError, match="endpoint"):
        parse_model_source("hf://a/b", endpoint=endpoint)


@pytest.mark.parametrize(
    ("uri", "bucket", "prefix"),
    [
        ("s3://models", "models", ""),
        ("s3://models/", "models", ""),
        ("S3://team.models/qwen/7b", "team.models", "qwen/7b"),
        ("s3://models/qwen/7b/", "models", "qwen/7b"),
        ("s3://models/a b", "models", "a b"),
    ],
)
def test_a_bucket_may_name_a_prefix(uri: str, bucket: str, prefix: str) -> None:
    expected = ModelSource(uri=uri, scheme=Scheme.S3, path="", bucket=bucket, prefix=prefix, env={})
    assert parse_model_source(uri) == expected


def test_a_tag_is_refused_unless_allowed_and_then_pinned_to_a_digest() -> None:
    uri = "oci://localhost:5000/team/model:v1.2_a"
    with pytest.raises(ModelSourceError, match="allowTags"):
        parse_model_source(uri)
    source = parse_model_source(uri, allow_tags=True)
    assert (source.tag, source.digest, source.reference) == ("v1.2_a", "", "localhost:5000/team/model:v1.2_a")
    pinned = source.pinned(f"sha256:{DIGEST}")
    by_digest = parse_model_source(f"oci://localhost:5000/team/model@sha256:{DIGEST}")
    assert pinned == replace(by_digest, uri=uri)
    assert pinned.ready_marker == f"/cache/oci/sha256-{DIGEST}/.noctaya-ready"


@pytest.mark.parametrize(
    "digest", ["", "sha256:", "sha512:" + DIGEST, DIGEST.upper(), "latest", DIGEST + "0"]
)
def test_a_tag_is_pinned_to_nothing_but_a_digest(digest: str) -> None:
    source = parse_model_source("oci://r/a:v1", allow_tags=True)
    with pytest.raises(ModelSourceError, match="pinned"):
        source.pinned(digest)


def test_the_endpoint_of_an_artifact_is_its_registry_without_tls() -> None:
    uri = f"oci://registry:5000/a@sha256:{DIGEST}"
    assert parse_model_source(uri, endpoint="http://registry:5000/").endpoint == "http://registry:5000/"
    for other in ("https://registry:5000", "http://mirror:5000", "http://registry:5000/path"):
        with pytest.raises(ModelSourceError, match=r"http://registry:5000"):
            parse_model_source(uri, endpoint=other)


@pytest.mark.parametrize(
    ("uri", "canonical"),
    [
        ("HuggingFace://org/name@v1", "hf://org/name@v1"),
        ("hf://org/name", "hf://org/name"),
        ("MODELSCOPE://org/name", "modelscope://org/name"),
        ("S3://bucket/", "s3://bucket"),
        ("s3://bucket/a/b/", "s3://bucket/a/b"),
        ("PVC://claim/", "pvc://claim"),
        ("pvc://claim/a", "pvc://claim/a"),
        (f"OCI://r/a@sha256:{DIGEST}", f"oci://r/a@sha256:{DIGEST}"),
    ],
)
def test_every_spelling_has_one_canonical_one(uri: str, canonical: str) -> None:
    source = parse_model_source(uri)
    assert source.canonical_uri == canonical
    assert parse_model_source(canonical) == replace(source, uri=canonical)


def keyed(uri: str, endpoint: str = "", **files: tuple[str, ...]) -> str:
    return cache_dir(parse_model_source(uri, endpoint=endpoint), FileFilter(**files))


def test_prewarmed_weights_lie_in_a_directory_named_after_what_they_are() -> None:
    assert re.fullmatch(r"/cache/models/hf-[0-9a-f]{16}", keyed("hf://org/name"))
    assert re.fullmatch(r"/cache/models/modelscope-[0-9a-f]{16}", keyed("modelscope://org/name"))
    assert re.fullmatch(r"/cache/models/s3-[0-9a-f]{16}", keyed("s3://bucket/a"))
    assert cache_dir(parse_model_source("pvc://c/a")) == "/models/a"
    assert keyed(f"oci://r/a@sha256:{DIGEST}") == f"/cache/oci/sha256-{DIGEST}"


def test_the_directory_is_the_same_for_other_spellings_of_the_same_weights() -> None:
    assert (
        keyed("hf://org/name") == keyed("HuggingFace://org/name") == keyed("hf://org/name", "https://mirror")
    )
    assert keyed("hf://a/b", include=("x", "y")) == keyed("hf://a/b", include=("y", "x", "y"))
    assert keyed("s3://bucket/a/") == keyed("s3://bucket/a")


def test_the_directory_is_another_one_for_other_weights() -> None:
    different = [
        keyed("hf://org/name"),
        keyed("hf://org/name@main"),
        keyed("hf://org/other"),
        keyed("modelscope://org/name"),
        keyed("hf://org/name", include=("*.json",)),
        keyed("hf://org/name", exclude=("*.json",)),
        keyed("s3://bucket/a"),
        keyed("s3://bucket/a", "https://minio:9000"),
        keyed("s3://bucket"),
    ]
    assert len(set(different)) == len(different)


def test_the_directory_of_a_source_never_changes() -> None:
    """Another name for it would have every cluster download its models again."""
    assert keyed("hf://Qwen/Qwen2.5-7B-Instruct") == "/cache/models/hf-0f41b0be63c29788"


def test_the_refusal_of_an_unknown_scheme_names_the_known_ones() -> None:
    with pytest.raises(ModelSourceError, match="'gs'; use hf, huggingface, modelscope, s3, pvc or oci"):
        parse_model_source("gs://bucket/key")


@given(st.text(alphabet="ab./\\-_ \n", max_size=12))
def test_no_claim_path_leaves_the_mount(subpath: str) -> None:
    try:
        source = parse_model_source(f"pvc://claim/{subpath}")
    except ModelSourceError:
        return
    assert posixpath.normpath(source.path) == source.path
    assert source.path == "/models" or source.path.startswith("/models/")
