"""Which detection finds which ground truth."""

from dataclasses import dataclass

from detap.protocols import Protocol


@dataclass
class Target:
    """A ground truth, for one area range; a match with a void one is no match."""

    row: int
    neutral: bool
    absorbing: bool
    void: bool
    claimed: bool = False


@dataclass
class Outcome:
    """What became of a detection: the row it matched or -1, how it counts, its best overlap."""

    truth: int = -1
    neutral: bool = False
    duplicate: bool = False
    overlap: float = 0.0


def reaches(overlap: float, threshold: float, protocol: Protocol) -> bool:
    """Return whether an overlap is large enough."""
    return overlap > threshold if protocol.strict_iou else overlap >= threshold


def match(
    targets: list[Target], overlaps: list[float], threshold: float, protocol: Protocol
) -> Outcome:
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
    taken = any(target.claimed and not target.neutral for target, _ in near)
    if protocol.candidate == "best":
        best = _largest(near, protocol)
        if best is not None and best.claimed and not best.neutral:
            return Outcome(duplicate=True)
    else:
        free = [(t, o) for t, o in near if not t.claimed or t.absorbing]
        counting = [(t, o) for t, o in free if not t.neutral]
        best = _largest(counting or free, protocol)
    if best is None:
        return Outcome(duplicate=taken)
    best.claimed = True
    return Outcome(-1 if best.void else best.row, best.neutral)


def in_group(
    outcome: Outcome,
    groups: list[tuple[Target, float]],
    score: float,
    threshold: float,
    protocol: Protocol,
) -> Outcome:
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
    finds = not (group.claimed or group.neutral or group.void) and score > 0
    group.claimed = group.claimed or finds
    return Outcome(group.row, neutral=not finds, overlap=outcome.overlap)


def _largest(pairs: list[tuple[Target, float]], protocol: Protocol) -> Target | None:
    best, most = None, 0.0
    for target, overlap in pairs:
        if overlap > most or (overlap == most and protocol.equal_iou == "last"):
            best, most = target, overlap
    return best
