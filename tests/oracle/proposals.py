"""Recall of proposals: ground truths matched by descending IoU, regardless of score."""


def covered(overlaps: list[list[float]]) -> list[float]:
    """Return the IoU at which each ground truth of an image is matched, 0 if unmatched."""
    result = [0.0] * len(overlaps)
    truths = set(range(len(overlaps)))
    unused = set(range(len(overlaps[0]))) if overlaps else set()
    while truths and unused:
        # The first of equals: the smallest numbers.
        truth, proposal = min(
            ((t, p) for t in truths for p in unused), key=lambda pair: _by_overlap(pair, overlaps)
        )
        result[truth] = overlaps[truth][proposal]
        truths.remove(truth)
        unused.remove(proposal)
    return result


def _by_overlap(pair: tuple[int, int], overlaps: list[list[float]]) -> tuple[float, int, int]:
    truth, proposal = pair
    return (-overlaps[truth][proposal], truth, proposal)
