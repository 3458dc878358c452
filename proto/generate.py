"""Generate the Python stubs of every .proto file here, or check that the committed ones are up to date.

python proto/generate.py            write the stubs into libs/noctaya-api/src
python proto/generate.py --check    generate to a temporary folder and compare; exit 1 on any difference
"""

import argparse
import difflib
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc

PROTO_ROOT = Path(__file__).resolve().parent
PACKAGE_ROOT = PROTO_ROOT.parent / "libs" / "noctaya-api" / "src"
SUFFIXES = ("_pb2.py", "_pb2.pyi", "_pb2_grpc.py")


def sources() -> list[Path]:
    """Every .proto file, relative to this folder."""
    return sorted(path.relative_to(PROTO_ROOT) for path in PROTO_ROOT.rglob("*.proto"))


def outputs(source: Path) -> list[Path]:
    """The stubs of one .proto file, relative to the package root."""
    return [source.with_name(source.stem + suffix) for suffix in SUFFIXES]


def generate(target: Path) -> None:
    """Run protoc over all sources.

    Raises:
        RuntimeError: protoc failed; its own messages are on stderr.
    """
    well_known = str(files("grpc_tools") / "_proto")
    arguments = [
        "protoc",
        f"--proto_path={PROTO_ROOT}",
        f"--proto_path={well_known}",
        f"--python_out={target}",
        f"--pyi_out={target}",
        f"--grpc_python_out={target}",
        *(str(source) for source in sources()),
    ]
    if protoc.main(arguments) != 0:
        raise RuntimeError("protoc failed")


def differences(fresh: Path) -> list[str]:
    """Unified diffs between the committed stubs and those under `fresh`; empty when they agree."""
    lines: list[str] = []
    for source in sources():
        for stub in outputs(source):
            committed = PACKAGE_ROOT / stub
            old = committed.read_text().splitlines(keepends=True) if committed.exists() else []
            new = (fresh / stub).read_text().splitlines(keepends=True)
            lines.extend(difflib.unified_diff(old, new, f"committed/{stub}", f"generated/{stub}"))
    return lines


def main(argv: list[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compare only")
    if not parser.parse_args(argv).check:
        generate(PACKAGE_ROOT)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        found = differences(Path(folder))
    sys.stdout.writelines(found)
    if found:
        print("The committed stubs differ; run: python proto/generate.py", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
