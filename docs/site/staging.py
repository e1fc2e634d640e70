"""The sources of the site: `python -m docs.site.staging FOLDER` copies the documents into a folder.

The documents are plain Markdown for GitHub, and stay so: the folder has copies, in which `docs/` is
the root of the site, and each link leads to the place of its file there. Files that are linked and
are no Markdown become pages of their own. The tables of contents are those of `docs/README.md`.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOME = "docs/README.md"
FOLDED = "Internals"
"""The group that is one entry of the navigation, which unfolds."""
LINK = re.compile(r'(\]\(|\b(?:src|srcset|href)=")([^\s()"#:]+)((?:#[^\s()"]*)?[)"])')
"""A link in Markdown or HTML without a scheme: what is before its path, its path, and the rest."""
GROUP = re.compile(r"^## (.+)\n([^#]*)", re.MULTILINE)
ITEM = re.compile(r"^- .*\n(?:  .*\n?)*", re.MULTILINE)
"""An item of a group, with those below it, which unfold."""
NAMED = re.compile(r"\[([^\[\]]+)\]\(([^\s()#:]+\.md)\)")
"""A link to a page of the site: its text and its path."""
IMAGES = {".svg", ".png", ".webp"}
LEXERS = {".py": "python", ".yaml": "yaml", ".yml": "yaml", ".json": "json", ".toml": "toml"}


def documents() -> list[str]:
    """Return the paths of all documents."""
    patterns = ("*.md", ".github/[CS]*.md", "docs/**/*.md", "examples/**/*.md")
    files = [file for pattern in patterns for file in ROOT.glob(pattern)]
    return sorted(file.relative_to(ROOT).as_posix() for file in files)


def place(path: str) -> str:
    """Return the place of a file or folder of the project in the site."""
    if path == HOME:
        return "index.md"
    if (ROOT / path).is_dir():
        path = f"{path}/README.md"
    if Path(path).suffix not in {".md", *IMAGES}:
        path = f"{path}.md"
    return path.removeprefix("docs/").removeprefix(".github/")


def stage(folder: Path) -> None:
    """Copy all documents, and everything that they link to, into a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    linked: set[str] = set()
    home, _ = relink(HOME, (ROOT / HOME).read_text(encoding="utf-8"))
    inner = unfolded(home)
    for path in documents():
        text, targets = relink(path, (ROOT / path).read_text(encoding="utf-8"))
        linked |= targets
        below = contents(text) if path == HOME else inner.get(place(path), "")
        _write(folder / place(path), text + below)
    _write(folder / f"{FOLDED.lower()}.md", inner[FOLDED])
    for path in sorted(linked):
        if (folder / place(path)).exists():
            continue
        if Path(path).suffix in IMAGES:
            (folder / place(path)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, folder / place(path))
        else:
            _write(folder / place(path), _page(path))


def relink(path: str, text: str) -> tuple[str, set[str]]:
    """Return a document with links for the site, and the paths of the files that it links to."""
    linked = set()

    def replace(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), found[2]))
        if found[2].startswith("/") or not (ROOT / target).exists():
            return found[0]
        linked.add(target)
        own = posixpath.relpath(place(target), posixpath.dirname(place(path)) or ".")
        return f"{found[1]}{own}{found[3]}"

    return LINK.sub(replace, text), linked


def contents(home: str) -> str:
    """Return the tables of contents of the home, which only the site reads."""
    parts = []
    for title, group in GROUP.findall(home):
        if title == FOLDED:
            parts.append(_contents("More", f"[{title}]({title.lower()}.md)"))
        else:
            items = ITEM.findall(group)
            parts.append(_contents(title, "".join(one.partition("\n")[0] for one in items)))
    return "".join(parts)


def unfolded(home: str) -> dict[str, str]:
    """Return the tables of contents below pages, and the page of the group that unfolds."""
    found = {}
    for title, group in GROUP.findall(home):
        if title == FOLDED:
            found[title] = f"# {title}\n\n{group}{_contents('', group)}"
            continue
        for item in ITEM.findall(group):
            first, _, rest = item.partition("\n")
            if pages := NAMED.findall(first):
                found[pages[0][1]] = _contents("", rest) if NAMED.search(rest) else ""
    return found


def _contents(title: str, text: str) -> str:
    pages = [f"{name.replace('`', '')} <{page}>" for name, page in NAMED.findall(text)]
    caption = [f":caption: {title}"] if title else []
    return "\n".join(["", "```{toctree}", ":hidden:", *caption, *pages, "```", ""])


def _page(path: str) -> str:
    """Return the page of a file that is no Markdown, or of a folder."""
    if (ROOT / path).is_dir():
        names = sorted(child.name for child in (ROOT / path).iterdir() if child.is_file())
        listed = "\n".join(f"- {name}\n{_fence(f'{path}/{name}')}" for name in names)
        return f"---\norphan: true\n---\n\n# {path}\n\n{listed}"
    return f"---\norphan: true\n---\n\n# {path}\n\n{_fence(path)}"


def _fence(path: str) -> str:
    text = (ROOT / path).read_text(encoding="utf-8")
    return f"\n````{LEXERS.get(Path(path).suffix, 'text')}\n{text.rstrip()}\n````\n"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    stage(Path(sys.argv[1]))
