"""What a report says of its inputs, whatever was read."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from detap.io.paths import is_url, shown

if TYPE_CHECKING:
    from detap.evaluation.partial import Partial
    from detap.tables.detection import Detections, GroundTruth, SourceFile


def describe_inputs(
    truth: "GroundTruth", detections: "Detections", *, digests: bool
) -> list[dict[str, Any]]:
    """Return what the report of a detector says of its inputs.

    Parameters
    ----------
    truth, detections : tables
        As read, before any selection.
    digests : bool
        Whether the report shows the sha256 of each.
    """
    return [
        *describe("ground_truth", truth.files, digests=digests, images=len(truth.images)),
        *describe("detections", detections.files, digests=digests),
    ]


def describe_partial(partial: "Partial") -> list[dict[str, Any]]:
    """Return what a report says of the inputs that partials were made from."""
    images = len(partial.images) if partial.truth is None else partial.truth.images
    return [
        {
            "role": entry.role,
            "path": _text(entry.path),
            "sha256": entry.sha256 or None,
            "files": entry.files,
            "records": entry.records,
            **({"images": images} if entry.role == "ground_truth" else {}),
            **_reading(entry.reading),
        }
        for entry in partial.inputs
    ]


def describe(
    role: str, sources: Sequence["SourceFile"], *, digests: bool, **counts: int
) -> list[dict[str, Any]]:
    """Return what a report says of the inputs of one role; `counts` are said besides."""
    if digests:
        from detap.io.digest import sha256_of_source  # most reports want none
    return [
        {
            "role": role,
            "path": _text(source.path),
            "sha256": sha256_of_source(source) if digests else None,
            "files": len(source.members) or 1,
            "records": source.records,
            **counts,
            **_reading(source.reading),
        }
        for source in sources
    ]


def _reading(options: Sequence[tuple[str, str]]) -> dict[str, dict[str, str]]:
    return {"reading": dict(options)} if options else {}


def _text(path: str) -> str:
    if is_url(path):
        path = shown(path)
    # Undecodable bytes of a file name are lone surrogates in Python, which no JSON reader takes.
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
