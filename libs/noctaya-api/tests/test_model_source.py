import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from noctaya_api.model_source import ModelSource, ModelSourceError, Scheme, parse_model_source

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
        "s3://bucket/key",
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


@pytest.mark.parametrize("uri", ["hf://a/b", "modelscope://a/b", "pvc://c"])
def test_c4_a_pull_secret_is_refused_without_a_registry(uri: str) -> None:
    with pytest.raises(ModelSourceError, match="secretRef"):
        parse_model_source(uri, has_secret=True)


def test_the_refusal_of_an_unknown_scheme_names_the_known_ones() -> None:
    with pytest.raises(ModelSourceError, match="'s3'; use hf, huggingface, modelscope, pvc or oci"):
        parse_model_source("s3://bucket/key")


@given(st.text(alphabet="ab./\\-_ \n", max_size=12))
def test_no_claim_path_leaves_the_mount(subpath: str) -> None:
    try:
        source = parse_model_source(f"pvc://claim/{subpath}")
    except ModelSourceError:
        return
    assert posixpath.normpath(source.path) == source.path
    assert source.path == "/models" or source.path.startswith("/models/")
