"""Archives: what is read, and what never gets to the disk (M4)."""

import io
import tarfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from noctaya_prewarm.errors import IntegrityFault, PrewarmError, Refused
from noctaya_prewarm.tar_reader import BLOCK, TarReader
from oci_artifacts import Member, special, tar_of

FORMATS = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)


def read(archive: bytes) -> list[tuple[str, bytes | None]]:
    """Names and contents; None for a directory."""
    reader = TarReader(io.BytesIO(archive), what="layer 1")
    found: list[tuple[str, bytes | None]] = []
    for member in reader:
        content = b"".join(iter(lambda: reader.read(700), b""))
        found.append((str(member.path), None if member.is_directory else content))
    return found


def with_header(archive: bytes, change: tuple[int, bytes], *, at: int = 0) -> bytes:
    """An archive whose header at byte `at` is changed, with a checksum that is right again."""
    header = bytearray(archive[at : at + BLOCK])
    position, value = change
    header[position : position + len(value)] = value
    header[148:156] = b" " * 8
    header[148:156] = f"{sum(header):06o}\0 ".encode()
    return archive[:at] + bytes(header) + archive[at + BLOCK :]


@pytest.mark.parametrize("form", FORMATS)
def test_files_and_directories_come_as_the_standard_library_wrote_them(form: int) -> None:
    folder = special("sub", tarfile.DIRTYPE)
    members: list[Member] = [
        ("a.txt", b"aaa"),
        folder,
        ("sub/b.bin", bytes(range(256)) * 5),
        ("empty", b""),
        ("c", b"x" * 512),
    ]
    assert read(tar_of(members, form=form)) == [
        ("a.txt", b"aaa"),
        ("sub", None),
        ("sub/b.bin", bytes(range(256)) * 5),
        ("empty", b""),
        ("c", b"x" * 512),
    ]


@pytest.mark.parametrize("form", FORMATS)
def test_long_names_in_every_format(form: int) -> None:
    name = "/".join(["directory" * 10] * 2) + "/file"
    assert read(tar_of([(name, b"x"), ("after", b"y")], form=form)) == [(name, b"x"), ("after", b"y")]


@pytest.mark.parametrize("form", (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT))
def test_names_in_other_scripts(form: int) -> None:
    assert read(tar_of([("模型/größe.bin", b"x")], form=form)) == [("模型/größe.bin", b"x")]


def test_the_root_directory_and_a_leading_dot_are_how_tar_writes_a_folder() -> None:
    root = special("./", tarfile.DIRTYPE)
    assert read(tar_of([root, ("./a", b"1"), ("./sub/b", b"2")])) == [
        (".", None),
        ("a", b"1"),
        ("sub/b", b"2"),
    ]


def test_members_that_are_not_read_are_skipped() -> None:
    archive = tar_of([("a", b"x" * 5000), ("b", b"y" * 3), ("c", b"")])
    assert [str(one.path) for one in TarReader(io.BytesIO(archive), what="layer 1")] == ["a", "b", "c"]


def test_an_archive_may_end_without_empty_blocks_but_not_within_a_member() -> None:
    archive = tar_of([("a", b"x" * 600)])
    assert read(archive[: 3 * BLOCK]) == [("a", b"x" * 600)]
    for end in (3 * BLOCK - 1, 2 * BLOCK, BLOCK + 10, BLOCK - 1, 1):
        with pytest.raises(IntegrityFault, match="layer 1 ends in the middle"):
            read(archive[:end])


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        (tarfile.SYMTYPE, "a symbolic link"),
        (tarfile.LNKTYPE, "a hard link"),
        (tarfile.CHRTYPE, "a character device"),
        (tarfile.BLKTYPE, "a block device"),
        (tarfile.FIFOTYPE, "a pipe"),
        (tarfile.GNUTYPE_SPARSE, "a sparse file"),
        (b"D", "unknown kind"),
        (b"V", "unknown kind"),
    ],
)
def test_m4_links_devices_and_what_else_is_no_file_are_refused(kind: bytes, named: str) -> None:
    with pytest.raises(Refused, match=rf"layer 1 contains.*{named}|layer 1 contains 'evil' of the {named}"):
        read(tar_of([("good", b"x"), special("evil", kind, linkname="/etc/passwd")]))


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd",
        "../x",
        "a/../../x",
        "./../x",
        "a//b",
        "a/.",
        "a\\b",
        "a\nb",
        "sub/.noctaya-ready",
        "x" * 300,
    ],
)
@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.DIRTYPE])
def test_m4_names_that_are_not_harmless_are_refused(name: str, kind: bytes) -> None:
    with pytest.raises(Refused, match="a name in layer 1"):
        read(tar_of([special(name, kind)]))


def test_m4_a_name_that_is_no_text_is_refused() -> None:
    archive = with_header(tar_of([("name", b"x")], form=tarfile.USTAR_FORMAT), (0, b"na\xffe"))
    with pytest.raises(Refused, match="a name in layer 1"):
        read(archive)


def test_m4_whiteouts_are_refused() -> None:
    with pytest.raises(Refused, match="flatten the image"):
        read(tar_of([("sub/.wh.config.json", b"")]))


def test_m4_a_name_of_a_gigabyte_takes_no_memory() -> None:
    header = bytearray(tar_of([("x", b"")], form=tarfile.GNU_FORMAT)[:BLOCK])
    header[156:157] = b"L"
    archive = with_header(bytes(header) + bytes(BLOCK * 4), (124, b"10000000000\0"))
    with pytest.raises(Refused, match="a name of 1073741824 bytes"):
        read(archive)
    header[156:157] = b"x"
    archive = with_header(bytes(header) + bytes(BLOCK * 4), (124, b"10000000000\0"))
    with pytest.raises(Refused, match="attributes of 1073741824 bytes"):
        read(archive)


def pax(records: bytes, *, kind: bytes = b"x") -> bytes:
    """An archive with one file, described by pax records."""
    file = tar_of([("file", b"content")], form=tarfile.USTAR_FORMAT)
    header = bytearray(tar_of([special("pax", kind)], form=tarfile.USTAR_FORMAT)[:BLOCK])
    sized = with_header(bytes(header), (124, f"{len(records):011o}\0".encode()))
    return sized + records + bytes(-len(records) % BLOCK) + file


def record(key: str, value: str) -> bytes:
    length = len(f" {key}={value}\n".encode())
    total = length + len(str(length))
    total = length + len(str(total))
    return f"{total} {key}={value}\n".encode()


def test_pax_attributes_that_say_nothing_of_bytes_are_left_out() -> None:
    records = record("mtime", "1.5") + record("SCHILY.xattr.user.x", "y") + record("path", "other")
    assert read(pax(records)) == [("other", b"content")]
    assert read(pax(record("comment", "made by somebody"), kind=b"g")) == [("file", b"content")]


@pytest.mark.parametrize(
    ("records", "kind", "named"),
    [
        (b"nonsense", b"x", "malformed attributes"),
        (b"99 path=x\n", b"x", "malformed attributes"),
        (b"0 path=x\n", b"x", "malformed attributes"),
        (b"999999999999 path=x\n", b"x", "malformed attributes"),
        (b"9 path=xy", b"x", "malformed attributes"),
        (record("size", "-5"), b"x", "malformed attributes"),
        (record("size", "9" * 18), b"x", "impossible size"),
        (record("path", "/etc/passwd"), b"x", "is absolute"),
        (record("path", "../x"), b"x", r"\.\."),
        (record("GNU.sparse.major", "1"), b"x", "sparse"),
        (record("path", "x"), b"g", "all its members at once"),
        (record("size", "1"), b"g", "all its members at once"),
    ],
)
def test_m4_pax_attributes_that_lie_are_refused(records: bytes, kind: bytes, named: str) -> None:
    with pytest.raises(Refused, match=named):
        read(pax(records, kind=kind))


def test_a_size_in_attributes_wins_over_the_header() -> None:
    assert read(pax(record("size", "4"))) == [("file", b"cont")]


def test_what_is_no_archive_is_refused() -> None:
    for content in (b"x" * 2000, b"\0\1" * 300, b"PK\3\4" + b"z" * 600):
        with pytest.raises(Refused, match="not a tar archive"):
            read(content)


def test_a_damaged_header_is_refused() -> None:
    archive = bytearray(tar_of([("a", b"x"), ("b", b"y")]))
    archive[2 * BLOCK + 3] ^= 1
    with pytest.raises(Refused, match="damaged"):
        read(bytes(archive))


@pytest.mark.parametrize("size", [b"77777777779\0", b"zzzzzzzzzzz\0", b"-0000000001\0", b"\xff" * 12])
def test_a_size_that_is_no_number_is_refused(size: bytes) -> None:
    with pytest.raises(Refused, match="no number"):
        read(with_header(tar_of([("a", b"x")]), (124, size)))


def test_a_binary_size_is_read() -> None:
    archive = with_header(tar_of([("a", b"abc")]), (124, b"\x80" + (3).to_bytes(11, "big")))
    assert read(archive) == [("a", b"abc")]
    huge = with_header(tar_of([("a", b"abc")]), (124, b"\x80" + (1 << 60).to_bytes(11, "big")))
    with pytest.raises(Refused, match="impossible size"):
        read(huge)


def test_m4_nothing_hides_behind_the_end() -> None:
    archive = tar_of([("a", b"x")])
    assert read(archive + bytes(50_000)) == [("a", b"x")]
    with pytest.raises(Refused, match="goes on after its end"):
        read(archive + tar_of([("/etc/passwd", b"x")]))


def test_a_description_without_a_member_is_refused() -> None:
    archive = pax(record("path", "x"))
    with pytest.raises(Refused, match="does not come"):
        read(archive[: 2 * BLOCK] + bytes(2 * BLOCK))


@settings(max_examples=200)
@given(st.data())
def test_a_damaged_archive_is_read_or_one_named_error(data: st.DataObject) -> None:
    archive = bytearray(tar_of([("a/b", b"x" * 700), ("größe" * 30, b"y"), special("d", tarfile.DIRTYPE)]))
    for _ in range(data.draw(st.integers(1, 4))):
        archive[data.draw(st.integers(0, len(archive) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(archive)))
    try:
        found = read(bytes(archive[:cut]))
    except PrewarmError as error:
        assert str(error).isprintable()
        return
    assert all(not name.startswith("/") and ".." not in name.split("/") for name, _ in found)


NAMES = st.lists(st.from_regex(r"[a-z]{1,8}(/[a-z]{1,90}){0,2}", fullmatch=True), unique=True, max_size=5)


@given(NAMES, st.sampled_from(FORMATS), st.binary(max_size=1500))
def test_what_the_standard_library_writes_is_read_back(names: list[str], form: int, content: bytes) -> None:
    assert read(tar_of([(name, content) for name in names], form=form)) == [(name, content) for name in names]
