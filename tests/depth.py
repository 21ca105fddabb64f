"""Amount of random examples and real data per test: all in `.ci/run`, else a sample."""

import os
from collections.abc import Sequence
from typing import Any, TypeVar

from hypothesis import settings

PROFILE = os.environ.get("DETAP_HYPOTHESIS", "sample")
"""The suite tries a sample of what ``ci`` tries, which `.ci/run` asks for."""

SAMPLED = PROFILE in ("sample", "unshrunk")

SHARE = 4
"""One in so many."""

Item = TypeVar("Item")


def examples(count: int, least: int = 15) -> settings:
    """Decorate a test to run so many examples."""
    return settings(max_examples=sampled(count, least))


def sampled(count: int, least: int = 15) -> int:
    """Return the number of examples to run, at least the minimum."""
    return min(count, max(count // SHARE, least)) if SAMPLED else count


def some(items: Sequence[Item], share: int = SHARE) -> Sequence[Item]:
    """Return every nth item, beginning with the first, or all."""
    return items[::share] if SAMPLED else items


def on_some_images(
    truth: dict[str, Any], results: list[dict[str, Any]], share: int = SHARE
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the contents of COCO files restricted to some images, or all of them."""
    images = some(truth["images"], share)
    kept = {image["id"] for image in images}
    annotations = [record for record in truth["annotations"] if record["image_id"] in kept]
    truth = truth | {"images": images, "annotations": annotations}
    return truth, [record for record in results if record["image_id"] in kept]
