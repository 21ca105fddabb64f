"""Folders of text files for tests."""

from pathlib import Path


def written(folder: Path, files: dict[str, str]) -> Path:
    """Write files of lines, by their path below `folder`; the last line ends as others do."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n" * bool(text), encoding="utf-8")
    return folder
