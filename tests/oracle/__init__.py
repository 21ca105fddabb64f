"""A plain reference implementation that the compiled core is compared with.

Lists and loops, one box at a time, driven by the fields of a Protocol; nothing here is shared
with `detap.core`. It is itself compared with pycocotools and a standard voc_eval by
`tests/parity/test_oracle.py`.
"""

from tests.oracle.score import Scores, score

__all__ = ["Scores", "score"]
