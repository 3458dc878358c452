"""What the layers of an artifact become, decided from the manifest (M4)."""

from pathlib import PurePosixPath
from typing import Any

import pytest
from noctaya_prewarm.artifact import Archive, Content, PlainFile, plan_content
from noctaya_prewarm.errors import Refused
from noctaya_prewarm.manifest import parse_manifest
from oci_artifacts import EMPTY, LAYER, LAYER_GZIP, descriptor, manifest_of, titled, unpacked_layer

FILEPATH = "org.cncf.model.filepath"


def plan(*layers: dict[str, Any]) -> Content:
    return plan_content(parse_manifest(manifest_of(layers)))


def test_a_title_is_a_file_whatever_its_media_type_says() -> None:
    content = plan(titled(b"a", "config.json"), titled(b"bb", "sub/dir/weights.bin"))
    assert [(str(one.path), one.layer.size) for one in content.files] == [
        ("config.json", 1),
        ("sub/dir/weights.bin", 2),
    ]
    assert content.archives == ()
    assert content.total == 3


def test_a_title_to_be_unpacked_is_a_directory() -> None:
    _, layer = unpacked_layer(b"archive", "tokenizer")
    content = plan(layer)
    assert content.files == ()
    assert content.archives[0].folder == PurePosixPath("tokenizer")
    assert len(content.archives[0].tar_digest) == 64


@pytest.mark.parametrize(
    ("media_type", "kind"),
    [
        ("application/vnd.cncf.model.weight.v1.raw", PlainFile),
        ("application/vnd.cncf.model.weight.v1.tar", Archive),
        ("application/vnd.cncf.model.doc.v1.tar+gzip", Archive),
    ],
)
def test_the_cncf_model_format(media_type: str, kind: type) -> None:
    content = plan(descriptor(b"x", media_type=media_type, **{FILEPATH: "model.safetensors"}))
    assert isinstance((*content.files, *content.archives)[0], kind)


@pytest.mark.parametrize(
    "media_type", [LAYER, LAYER_GZIP, "application/vnd.docker.image.rootfs.diff.tar.gzip"]
)
def test_layers_of_an_image_are_archives(media_type: str) -> None:
    content = plan(descriptor(b"x", media_type=media_type))
    assert content.archives[0].folder == PurePosixPath()


def test_the_empty_layer_of_an_artifact_without_content_is_nothing() -> None:
    assert len(plan(EMPTY, titled(b"a", "a")).files) == 1
    with pytest.raises(Refused, match="holds no file"):
        plan(EMPTY)
    with pytest.raises(Refused, match="holds no file"):
        plan()


def test_a_layer_that_cannot_be_named_is_refused() -> None:
    with pytest.raises(Refused, match=r"layer 2 of type 'application/octet-stream' has no title"):
        plan(titled(b"a", "a"), descriptor(b"x", media_type="application/octet-stream"))


@pytest.mark.parametrize(
    "title",
    ["/etc/passwd", "../x", "a/../../x", "a//b", ".", "", "a\0b", "x" * 300, ".noctaya-ready", "a\\b"],
)
@pytest.mark.parametrize("unpack", [False, True])
def test_m4_a_title_that_is_not_harmless_is_refused(title: str, unpack: bool) -> None:
    layer = unpacked_layer(b"x", title)[1] if unpack else titled(b"x", title)
    with pytest.raises(Refused, match="title of layer 1"):
        plan(layer)
    with pytest.raises(Refused, match="path of layer 1"):
        plan(descriptor(b"x", media_type="application/x.raw", **{FILEPATH: title}))


@pytest.mark.parametrize("titles", [("a", "a"), ("a", "a/b"), ("a/b/c", "a/b")])
def test_m4_two_layers_cannot_be_one_file(titles: tuple[str, str]) -> None:
    with pytest.raises(Refused, match=r"twice|at once"):
        plan(*(titled(title.encode(), title) for title in titles))


def test_an_unpacked_layer_with_another_algorithm_is_refused() -> None:
    _, layer = unpacked_layer(b"x", "folder")
    layer["annotations"]["io.deis.oras.content.digest"] = "sha512:" + "a" * 128
    with pytest.raises(Refused, match="sha512"):
        plan(layer)
