"""The documentation as a site with search, readable without a network: every page that README.md leads to.

Pages are copied as they are. What a forge shows for a link to a folder, its README or a list of what is in
it, is made here; files that are no pages become downloads.
"""

from __future__ import annotations

import posixpath
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from noctaya_docs.links import links_of, normal
from noctaya_docs.pages import REPOSITORY

ROOT_PAGE: Final = Path("README.md")
SECTIONS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    (
        "Use it",
        (
            "docs/getting-started.md",
            "docs/install.md",
            "docs/your-model.md",
            "docs/questions.md",
            "docs/troubleshooting.md",
            "docs/comparison.md",
            "examples",
        ),
    ),
    (
        "Run it",
        (
            "docs/operations.md",
            "docs/cold-starts.md",
            "docs/observability.md",
            "docs/reliability.md",
            "docs/performance.md",
            "SECURITY.md",
        ),
    ),
    ("Look up", ("docs/crd.md", "docs/contracts.md", "docs/api-stability.md", "charts", "CHANGELOG.md")),
    ("Inside", ("docs/architecture.md", "docs/decisions", "services", "libs")),
    ("Work on it", ("CONTRIBUTING.md", "e2e", "proto")),
)
"""The navigation: pages, and folders for all the pages below them. What is in none of them goes last."""
CONFIGURATION: Final = """\
project = "Noctaya"
author = copyright = "The Noctaya authors"
extensions = ["myst_parser"]
root_doc = "README"
html_theme = "furo"
html_title = "Noctaya"
html_copy_source = False
html_show_sphinx = False
myst_heading_anchors = 6
myst_heading_slug_func = "noctaya_docs.links.slug_of"
highlight_language = "text"
smartquotes = False
"""
LISTING: Final = "index.md"


class SiteFault(Exception):
    """The site could not be built; the message says why."""


def build(output: Path, *, work: Path, root: Path = REPOSITORY) -> int:
    """Build the site into `output`; how many pages it has.

    Args:
        output: replaced, if it is there.
        work: a folder for what Sphinx reads, replaced too.
        root: of the repository.

    Raises:
        SiteFault: a link or a page can't be rendered. Sphinx' warnings are faults.
    """
    shutil.rmtree(work, ignore_errors=True)
    pages = collect(root)
    for page in pages:
        _put(work / page, rewritten(page, root))
    for folder in sorted(listed(pages, root)):
        _put(work / folder / LISTING, _listing(folder, root))
    for file in sorted(files(pages, root)):
        (work / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / file, work / file)
    everything = [*pages, *(folder / LISTING for folder in listed(pages, root))]
    with (work / ROOT_PAGE).open("a", encoding="utf-8") as first:
        first.write("\n" + "\n".join(navigation(everything)))
    _put(work / "conf.py", CONFIGURATION)
    shutil.rmtree(output, ignore_errors=True)
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", "-E", "-d"]
    done = subprocess.run(
        [*command, work / ".doctrees", work, output], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SiteFault(done.stderr.strip() or done.stdout.strip())
    return len(everything)


def collect(root: Path) -> list[Path]:
    """README.md and every page that it leads to, over any number of links."""
    found: dict[Path, None] = {}
    waiting = [ROOT_PAGE]
    while waiting:
        page = waiting.pop()
        if page in found:
            continue
        found[page] = None
        waiting += [target for link in links_of(page, root) if (target := _page(link.path, root)) is not None]
    return sorted(found)


def listed(pages: Iterable[Path], root: Path) -> set[Path]:
    """Folders that pages lead to and that have no README."""
    return {
        link.path
        for page in pages
        for link in links_of(page, root)
        if (root / link.path).is_dir() and _page(link.path, root) is None
    }


def files(pages: Iterable[Path], root: Path) -> set[Path]:
    """Files that are no pages and that pages, or the lists of folders, lead to."""
    pages = list(pages)
    found = {
        link.path
        for page in pages
        for link in links_of(page, root)
        if (root / link.path).is_file() and link.path.suffix != ".md"
    }
    return found | {
        folder / file.name
        for folder in listed(pages, root)
        for file in _shown(root / folder)
        if file.is_file()
    }


def rewritten(page: Path, root: Path) -> str:
    """A page whose links to folders lead to pages."""
    text = (root / page).read_text(encoding="utf-8")
    for link in links_of(page, root):
        if not (root / link.path).is_dir():
            continue
        target = _page(link.path, root) or link.path / LISTING
        relative = posixpath.relpath(target.as_posix(), page.parent.as_posix())
        text = text.replace(f"]({link.target})", f"]({relative})")
    return text


def navigation(pages: Iterable[Path]) -> list[str]:
    """Sphinx' tables of contents, one a section."""
    left = [page for page in pages if page != ROOT_PAGE]
    lines: list[str] = []
    for caption, members in (*SECTIONS, ("More", (".",))):
        shown = []
        for member in members:
            inside = [
                page for page in left if page == Path(member) or Path(member) in (page.parent, *page.parents)
            ]
            inside.sort(key=lambda page: (len(page.parts), page.name != "README.md", page.as_posix()))
            shown += inside
            left = [page for page in left if page not in inside]
        if shown:
            lines += ["```{toctree}", ":hidden:", f":caption: {caption}", ":maxdepth: 1", ""]
            lines += [page.with_suffix("").as_posix() for page in shown]
            lines += ["```", ""]
    return lines


def _page(path: Path, root: Path) -> Path | None:
    """The page that a path stands for: itself, or a folder's README."""
    if path.suffix == ".md" and (root / path).is_file():
        return path
    readme = path / ROOT_PAGE.name
    return normal(readme) if (root / readme).is_file() else None


def _shown(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if not each.name.startswith((".", "__")))


def _listing(folder: Path, root: Path) -> str:
    lines = [f"# {folder.as_posix()}", ""]
    for each in _shown(root / folder):
        if each.is_file() and each.suffix != ".md":
            lines.append(f"- [{each.name}]({each.name})")
        else:
            lines.append(f"- {each.name}")
    return "\n".join(lines) + "\n"


def _put(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
