from typing import Any

from detap.core.evidence import Evidence

class Scorer:
    jobs: int
    dealt: memoryview  # (D, 3) int32

    def __init__(self, *columns_rules_and_outputs: Any) -> None: ...
    def keep(self, evidence: Evidence, every: bool) -> None: ...
    def work(self) -> None: ...
