"""Write the page of a workload with its images, and open it in a browser.

    python -m benchmarks.page [SIZE]

SIZE is a workload, 500k without. Its images are made first: JPEG of smooth noise, of 100 kB each.
A line of JSON: wall and processor seconds of `detap report`, of the same without images, and of an
evaluation (medians of three), the number of pictures on the page, its MB, and the seconds until
Chromium (``DETAP_CHROMIUM``) has loaded it and shows the first picture; null without Playwright or
browser.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.detap_command import installed
from benchmarks.measure import run

RUNS = 3
SEED = 7
BASES, SIDE = 12, 1100  # images are parts of a few large ones
CHROMIUM = os.environ.get("DETAP_CHROMIUM", "/usr/bin/chromium")
DATA = Path(__file__).resolve().parent / "cache" / "data"


def write(truth: str, folder: Path) -> None:
    """Write the images of a ground truth, unless they are there."""
    # This process would keep the memory of NumPy and Pillow: a child of it writes.
    import numpy as np  # noqa: PLC0415
    from PIL import Image  # noqa: PLC0415

    rng = np.random.default_rng(SEED)
    bases = []
    for _ in range(BASES):
        total = np.zeros((SIDE, SIDE, 3), np.float32)
        for octave in range(2, 11):
            noise = rng.normal(size=(2**octave, 2**octave, 3)).astype(np.float32)
            for channel in range(3):
                layer = Image.fromarray(noise[:, :, channel] * np.float32(0.95**octave))
                total[:, :, channel] += np.asarray(
                    layer.resize((SIDE, SIDE), Image.Resampling.BICUBIC)
                )
        total = (total - total.min()) / (total.max() - total.min()) * 255
        bases.append(Image.fromarray(total.astype(np.uint8)))
    folder.mkdir(parents=True, exist_ok=True)
    for number, image in enumerate(json.loads(Path(truth).read_bytes())["images"]):
        path, width, height = folder / image["file_name"], image["width"], image["height"]
        x, y = rng.integers(0, SIDE - width + 1), rng.integers(0, SIDE - height + 1)
        if not path.exists():
            part = bases[number % BASES].crop((x, y, x + width, y + height))
            part.save(path, "JPEG", quality=90)


def cost(command: list[str]) -> tuple[float, float]:
    """Return the medians of wall and processor seconds."""
    runs = [run(command)[0] for _ in range(RUNS)]
    return median(r.wall for r in runs), median(r.user + r.system for r in runs)


def opened(page: Path) -> float | None:
    """Return the seconds until a browser has loaded a page and shows a picture."""
    if importlib.util.find_spec("playwright") is None or not Path(CHROMIUM).exists():
        return None
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    times = []
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for _ in range(RUNS):
            tab = chromium.new_page(viewport={"width": 1400, "height": 900})
            start = perf_counter()
            tab.goto(page.as_uri())
            tab.wait_for_selector("svg image", state="attached")
            times.append(perf_counter() - start)
            tab.close()
        chromium.close()
    return median(times)


def measured(size: str) -> dict[str, Any]:
    """Return times, pictures and megabytes."""
    this = [sys.executable, "-m"]
    made = subprocess.run(
        [*this, "benchmarks.workloads", "--json", size], check=True, capture_output=True
    )
    files = json.loads(made.stdout)
    images, page = DATA / f"images-{size}", DATA / "page.html"
    subprocess.run(
        [*this, "benchmarks.page", "--write", files["ground_truth"], str(images)], check=True
    )
    given = ["--gt", files["ground_truth"], "--dt", files["detections"]]
    report = [*installed().program, "report", *given, "-o", str(page), "--images"]
    evaluation = cost([*installed().program, "eval", *given])
    without = cost([*report, "none"])
    written = cost([*report, str(images)])
    return {
        "evaluation": evaluation,
        "page_without_images": without,
        "page": written,
        "pictures": page.read_text("utf-8").count("data:image/webp"),
        "mb": page.stat().st_size / 1e6,
        "opened": opened(page),
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        write(sys.argv[2], Path(sys.argv[3]))
    else:
        print(json.dumps(measured(*sys.argv[1:2] or ["500k"])))
