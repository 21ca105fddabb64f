"""What a report says of its inputs, whatever was read."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from detap.tables import Detections, GroundTruth, SourceFile


def describe_inputs(
    truth: "GroundTruth", detections: "Detections", digests: Mapping[str, str | None]
) -> list[dict[str, Any]]:
    """Return what the report of a detector says of its inputs.

    Parameters
    ----------
    truth, detections : tables
        As read, before any selection.
    digests : mapping
        From path to sha256, or None for what cannot be read twice (a pipe).
    """
    return [
        *describe("ground_truth", truth.files, digests, images=len(truth.images)),
        *describe("detections", detections.files, digests),
    ]


def describe(
    role: str, sources: Sequence["SourceFile"], digests: Mapping[str, str | None], **counts: int
) -> list[dict[str, Any]]:
    """Return what a report says of the inputs of one role; `counts` are said besides."""
    return [
        {
            "role": role,
            "path": _text(source.path),
            "sha256": digests.get(source.path),
            "files": len(source.members) or 1,
            "records": source.records,
            **counts,
        }
        for source in sources
    ]


def _text(path: str) -> str:
    # Undecodable bytes of a file name are lone surrogates in Python, which no JSON reader takes.
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
