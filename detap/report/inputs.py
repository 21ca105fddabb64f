"""What a report says of its inputs, whatever was read."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from detap.io.paths import is_url, shown

if TYPE_CHECKING:
    from detap.evaluation.partial import Partial
    from detap.evaluation.partial.provenance import Input
    from detap.tables.detection import Detections, GroundTruth, SourceFile


def describe_inputs(
    ground_truth: "GroundTruth", detections: "Detections", *, digests: bool
) -> list[dict[str, Any]]:
    """Return what the report of a detector says of its inputs.

    Parameters
    ----------
    ground_truth, detections : tables
        As read, before any selection.
    digests : bool
        Whether the report shows the sha256 of each.
    """
    return [
        *describe(
            "ground_truth", ground_truth.files, digests=digests, images=len(ground_truth.images)
        ),
        *describe("detections", detections.files, digests=digests),
    ]


def describe_partial(partial: "Partial") -> list[dict[str, Any]]:
    """Return what a report says of the inputs that partials were made from."""
    images = len(partial.images) if partial.ground_truth is None else partial.ground_truth.images
    return [
        _describe(
            entry,
            entry.role,
            entry.files,
            entry.sha256 or None,
            {"images": images} if entry.role == "ground_truth" else {},
        )
        for entry in partial.inputs
    ]


def describe(
    role: str, sources: Sequence["SourceFile"], *, digests: bool, **counts: int
) -> list[dict[str, Any]]:
    """Return what a report says of the inputs of one role; `counts` are said besides."""
    if digests:
        from detap.io.digest import sha256_of_source  # most reports want none
    return [
        _describe(
            source,
            role,
            len(source.members) or 1,
            sha256_of_source(source) if digests else None,
            counts,
        )
        for source in sources
    ]


def _describe(
    source: "SourceFile | Input",
    role: str,
    files: int,
    sha256: str | None,
    counts: Mapping[str, int],
) -> dict[str, Any]:
    path = shown(source.path) if is_url(source.path) else source.path
    return {
        "role": role,
        # Undecodable bytes of a file name are lone surrogates in Python, which no JSON takes.
        "path": path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"),
        "sha256": sha256,
        "files": files,
        "records": source.records,
        **counts,
        **({"reading": dict(source.reading)} if source.reading else {}),
    }
