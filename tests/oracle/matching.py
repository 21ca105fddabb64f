"""Matching of one detection at a time."""

from dataclasses import dataclass

from detap.protocols import Protocol


@dataclass
class Target:
    """A ground truth in one area range; a match with an unmatchable one does not count."""

    row: int
    ignored: bool
    crowd: bool
    unmatchable: bool
    matched: bool = False


@dataclass
class MatchResult:
    """The matched row or -1, whether it is ignored, and the largest IoU."""

    truth: int = -1
    ignored: bool = False
    duplicate: bool = False
    overlap: float = 0.0


def reaches(overlap: float, threshold: float, protocol: Protocol) -> bool:
    """Return True if an IoU reaches the threshold."""
    return overlap > threshold if protocol.strict_iou else overlap >= threshold


def match(
    targets: list[Target], overlaps: list[float], threshold: float, protocol: Protocol
) -> MatchResult:
    """Match one detection to the ground truths of its image and class, in file order.

    The matched one is marked as such.
    """
    pairs = list(zip(targets, overlaps, strict=True))
    near = [pair for pair in pairs if reaches(pair[1], threshold, protocol)]
    taken = any(target.matched and not target.ignored for target, _ in near)
    if protocol.candidate == "best":
        best = _largest(near, protocol)
        if best is not None and best.matched and not best.ignored:
            return MatchResult(duplicate=True)
    else:
        free = [(t, o) for t, o in near if not t.matched or t.crowd]
        counting = [(t, o) for t, o in free if not t.ignored]
        best = _largest(counting or free, protocol)
    if best is None:
        return MatchResult(duplicate=taken)
    best.matched = True
    return MatchResult(-1 if best.unmatchable else best.row, best.ignored)


def in_group(
    outcome: MatchResult,
    groups: list[tuple[Target, float]],
    score: float,
    threshold: float,
    protocol: Protocol,
) -> MatchResult:
    """Match a false positive to the group-of boxes of its image and class, in file order.

    Each has the fraction of the detection inside it; the matched one is marked as such. Detections
    come by descending score.
    """
    group = _largest([pair for pair in groups if reaches(pair[1], threshold, protocol)], protocol)
    if group is None:
        return outcome
    matches = not (group.matched or group.ignored or group.unmatchable) and score > 0
    group.matched = group.matched or matches
    return MatchResult(group.row, ignored=not matches, overlap=outcome.overlap)


def _largest(pairs: list[tuple[Target, float]], protocol: Protocol) -> Target | None:
    best, most = None, 0.0
    for target, overlap in pairs:
        if overlap > most or (overlap == most and protocol.equal_iou == "last"):
            best, most = target, overlap
    return best
