"""The second implementation of each compiled module, and the test that compares them.

The second implementation is a module of the oracle, a reference, a reader in plain Python, or a few
lines of the test itself; the test imports it, or a helper does that the test imports.
`tests/test_oracles.py` compares this table with the compiled modules.
"""

ORACLES: dict[str, tuple[str, str]] = {
    "detap.core._assignment": ("tests.core.test_assignment", "tests.core.test_assignment"),
    "detap.core._curves": ("tests.oracle.curves", "tests.parity.test_core_is_oracle"),
    "detap.core._keypoints": ("pycocotools", "tests.parity.test_keypoints"),
    "detap.core._masks": ("tests.oracle.masks", "tests.core.test_masks"),
    "detap.core._matching": ("tests.oracle.matching", "tests.parity.test_core_is_oracle"),
    "detap.core._nearest": ("tests.core.test_nearest", "tests.core.test_nearest"),
    "detap.core._ordering": ("tests.oracle.score", "tests.parity.test_core_is_oracle"),
    "detap.core._overlap": ("tests.oracle.overlap", "tests.parity.test_core_is_oracle"),
    "detap.core._polygons": ("tests.oracle.polygons", "tests.core.test_polygons"),
    "detap.core._ranking": ("tests.core.test_ranking", "tests.core.test_ranking"),
    "detap.core._resampling": ("tests.oracle.resampling", "tests.gate.test_resampling"),
    "detap.formats.coco._spans": ("pycocotools", "tests.formats.test_coco_masks"),
    "detap.formats.json._fields": ("tests.formats.coco_files", "tests.formats.test_coco_readers"),
    "detap.formats.openimages._scan": (
        "detap.formats.openimages.rows",
        "tests.formats.test_openimages",
    ),
    "detap.formats.reading._numbers": ("tests.formats.test_numbers", "tests.formats.test_numbers"),
    "detap.formats.text._ragged": ("tests.oracle.lines", "tests.formats.test_text_lines"),
    "detap.formats.voc._scan": ("fuzz.targets", "tests.formats.test_voc_scan"),
    "detap.tables._columns": ("tests.formats.test_columns", "tests.formats.test_columns"),
    "detap.tables._loops": ("tests.oracle.columns", "tests.formats.test_columns"),
    "detap.tables._runs": ("tests.oracle.masks", "tests.core.test_masks"),
}
"""Compiled module: its second implementation, and the test that compares them."""

NO_NUMBERS = {"detap.cli._abort": "tests.reliability.test_faults"}
"""Compiled modules that compute nothing, and the test of what they do."""
