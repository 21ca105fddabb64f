"""Matching of one detection at a time."""

from dataclasses import dataclass

from detap.protocols import Protocol


@dataclass
class Target:
    """A ground truth in one area range; a match with an unmatchable one does not count."""

    row: int
    ignored: bool
    crowd: bool
    void: bool
    claimed: bool = False


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
    """Return what becomes of one detection among the targets of its image and class.

    Parameters
    ----------
    targets : list of Target
        In file order; the one that is found is marked as claimed.
    overlaps : list of float
        Of the detection with each of them.
    threshold : float
        The overlap that is needed.
    """
    pairs = list(zip(targets, overlaps, strict=True))
    near = [pair for pair in pairs if reaches(pair[1], threshold, protocol)]
    taken = any(target.claimed and not target.ignored for target, _ in near)
    if protocol.candidate == "best":
        best = _largest(near, protocol)
        if best is not None and best.claimed and not best.ignored:
            return MatchResult(duplicate=True)
    else:
        free = [(t, o) for t, o in near if not t.claimed or t.crowd]
        counting = [(t, o) for t, o in free if not t.ignored]
        best = _largest(counting or free, protocol)
    if best is None:
        return MatchResult(duplicate=taken)
    best.claimed = True
    return MatchResult(-1 if best.void else best.row, best.ignored)


def in_group(
    outcome: MatchResult,
    groups: list[tuple[Target, float]],
    score: float,
    threshold: float,
    protocol: Protocol,
) -> MatchResult:
    """Return what becomes of a false positive where there are boxes around groups.

    Parameters
    ----------
    outcome : MatchResults
        As a false positive.
    groups : list of (Target, float)
        Those of its image and class, in file order, with the share of the detection that lies in
        each; one that is found is marked as claimed.
    score : float
        Of the detection; detections come by falling score.
    threshold : float
        The share that is needed.
    """
    group = _largest([pair for pair in groups if reaches(pair[1], threshold, protocol)], protocol)
    if group is None:
        return outcome
    finds = not (group.claimed or group.ignored or group.void) and score > 0
    group.claimed = group.claimed or finds
    return MatchResult(group.row, ignored=not finds, overlap=outcome.overlap)


def _largest(pairs: list[tuple[Target, float]], protocol: Protocol) -> Target | None:
    best, most = None, 0.0
    for target, overlap in pairs:
        if overlap > most or (overlap == most and protocol.equal_iou == "last"):
            best, most = target, overlap
    return best
