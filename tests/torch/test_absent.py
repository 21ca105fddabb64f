"""Without PyTorch the module names it as missing; everything else works."""

import sys

from tests.processes import finished

CODE = """
import sys
sys.modules["torch"] = None  # as if it were not installed
import detap
assert detap.Evaluator
for ask in ("import detap.torch", "detap.torch.MeanAveragePrecision"):
    try:
        exec(ask)
    except ImportError as error:
        print(error)
"""


def test_the_module_names_the_missing_package() -> None:
    done = finished([sys.executable, "-c", CODE])
    message = "detap.torch needs PyTorch: pip install 'detap[torch]', or torch by itself\n"
    assert done.stdout == 2 * message
