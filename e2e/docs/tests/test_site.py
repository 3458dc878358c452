"""The site builds without a warning, needs no network to be read, and has every page in its navigation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from noctaya_docs.pages import REPOSITORY
from noctaya_docs.site import SiteFault, build, collect, navigation

pytestmark = pytest.mark.timeout(300)
"""5 s on an idle machine; whoever runs beside it may have both cores."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build(folder / "html", work=folder / "source")
    return folder / "html"


def test_every_page_is_there_and_in_the_navigation(site: Path) -> None:
    first = (site / "README.html").read_text(encoding="utf-8")
    for page in collect(REPOSITORY):
        name = page.with_suffix(".html").as_posix()
        assert (site / name).is_file()
        assert name == "README.html" or f'href="{name}"' in first, f"{page} is in no section"


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loading = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=["'](https?:)?//[^"']+""")
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    found = [(page.name, match[0]) for page in pages for match in loading.finditer(page.read_text("utf-8"))]
    assert found == []
    sheets = [
        sheet for sheet in site.rglob("*.css") if re.search(r"url\(['\"]?https?:", sheet.read_text("utf-8"))
    ]
    assert sheets == []


def test_search_knows_the_words_of_a_page(site: Path) -> None:
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert "docs/operations" in index
    assert '"activationtimeout":' in index or "activationtimeout:" in index


def test_a_page_that_can_not_be_rendered_is_a_fault(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "README.md").write_text("# T\n\n[a](b.md)\n")
    with pytest.raises(SiteFault, match=r"b\.md"):
        build(tmp_path / "html", work=tmp_path / "source", root=root)


def test_a_folder_without_a_readme_becomes_a_list(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "data").mkdir(parents=True)
    (root / "data" / "x.yaml").write_text("a: 1\n")
    (root / "README.md").write_text("# T\n\n[data](data)\n")
    assert build(tmp_path / "html", work=tmp_path / "source", root=root) == 2
    assert "x.yaml" in (tmp_path / "html" / "data" / "index.html").read_text(encoding="utf-8")


def test_navigation_has_each_page_once() -> None:
    pages = [Path(name) for name in ("README.md", "docs/install.md", "services/a/README.md", "odd/x.md")]
    lines = navigation(pages)
    entries = [line for line in lines if line and not line.startswith((":", "`"))]
    assert sorted(entries) == ["docs/install", "odd/x", "services/a/README"]
