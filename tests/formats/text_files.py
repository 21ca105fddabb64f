"""Folders of text files for tests."""

from pathlib import Path


def written(folder: Path, files: dict[str, str]) -> Path:
    """Write files of lines, by path below `folder`; the last line ends with a newline."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n" * bool(text), encoding="utf-8")
    return folder
