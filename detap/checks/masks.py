"""Size limits of masks."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from detap.core.masks import max_runs
from detap.tables.masks import MOST_PIXELS, Masks


def oversized_masks(
    rows: NDArray[np.intp], masks: Masks, image: NDArray[np.int32], limit: int
) -> Iterator[tuple[int, str, str]]:
    """Yield row, message and hint of polygons beyond the memory limits."""
    pixels = masks.sizes.astype(np.int64).prod(axis=1)
    polygons = np.diff(masks.ring_start) > 0
    for index in np.flatnonzero(polygons & (pixels > MOST_PIXELS)).tolist():
        height, width = masks.sizes[index].tolist()
        message = f"image has height {height} and width {width} ({pixels[index]} pixels)"
        yield int(rows[index]), message, f"masks are limited to {MOST_PIXELS} pixels"
    runs = max_runs(masks.arrays)
    totals = np.bincount(image, runs)
    for large in np.flatnonzero(totals > limit).tolist():
        of_image = np.flatnonzero(image == large)
        index = of_image[np.argmax(runs[of_image])]
        message = (
            f"segmentation has up to {runs[index]} runs, those of its image {int(totals[large])}, "
            f"above the limit of {limit}"
        )
        yield int(rows[index]), message, "simplify the polygons, or raise --max-mask-runs"
