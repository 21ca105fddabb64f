"""The inputs of a report."""

from collections.abc import Sequence
from typing import Any

from detap.io.digest import sha256_of_source
from detap.io.paths import SourceFile, is_url, shown
from detap.tables.detection import Detections, GroundTruth


def describe_inputs(
    ground_truth: GroundTruth, *, digests: bool, **tables: Detections
) -> list[dict[str, Any]]:
    """Describe the ground truth, and detections by their role."""
    images = len(ground_truth.images)
    described = describe("ground_truth", ground_truth.files, digests=digests, images=images)
    for role, table in tables.items():
        described += describe(role, table.files, digests=digests)
    return described


def describe(
    role: str, sources: Sequence[SourceFile], *, digests: bool, **counts: int
) -> list[dict[str, Any]]:
    """Describe the inputs of one role, with further `counts`."""
    described = []
    for source in sources:
        path = shown(source.path) if is_url(source.path) else source.path
        described.append(
            {
                "role": role,
                # Undecodable bytes of a file name are lone surrogates in Python, invalid in JSON.
                "path": path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"),
                "sha256": sha256_of_source(source) if digests else None,
                "files": len(source.members) or 1,
                "records": source.records,
                **counts,
                **({"reading": dict(source.reading)} if source.reading else {}),
            }
        )
    return described
