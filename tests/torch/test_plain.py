"""Without torchmetrics the metric passes the same tests, as a class with the same methods."""

import sys

from tests.conftest import ROOT
from tests.processes import finished
from tests.torch.references import torch as found_torch

found_torch()

CODE = """
import sys
sys.modules["torchmetrics"] = None  # as if it were not installed
import pytest
status = pytest.main(["-q", "-n", "0", "-p", "no:cacheprovider", "tests/torch/test_mean_ap.py"])
from detap.torch import MeanAveragePrecision
from detap.torch.metric import PlainMetric
assert issubclass(MeanAveragePrecision, PlainMetric)
sys.exit(status)
"""


def test_the_tests_pass_without_torchmetrics() -> None:
    done = finished([sys.executable, "-c", CODE], cwd=ROOT)
    assert "torchmetrics is absent" in done.stdout
