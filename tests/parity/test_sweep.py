"""A sample of the random cases of `make sweep`."""

from pathlib import Path

import numpy as np
import pytest

from tests.parity.sweep import SWEEPS, sweep_of


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("name", SWEEPS)
def test_a_sample_of_random_cases_equals_the_reference(name: str, tmp_path: Path) -> None:
    check = sweep_of(name)
    for seed in range(10):
        check(np.random.default_rng(seed), tmp_path)
