"""The plain and obviously right implementation that the compiled core is held to.

Lists and loops, one box at a time, driven by the fields of a Protocol; nothing here is shared
with `detap.core`. It is itself held to pycocotools and to a voc_eval of the usual kind by
`tests/parity/test_oracle.py`.
"""

from tests.oracle.score import Scores, score

__all__ = ["Scores", "score"]
