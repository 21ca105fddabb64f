from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from detap.core.evidence import Outcomes, Ranking
from detap.core.finishing import Scores
from detap.core.rules import Rules

class Replay:
    def __init__(
        self,
        rules: Rules,
        scores: Scores,
        all_limits: bool,
        ranking: Ranking,
        outcomes: Outcomes,
        code: NDArray[np.uint32],
        labels: Sequence[int],
    ) -> None: ...
    def work(self) -> None: ...

class Stretch:
    def __init__(
        self,
        rules: Rules,
        scores: Scores,
        all_limits: bool,
        ranking: Ranking,
        outcomes: Outcomes,
        code: NDArray[np.uint32],
    ) -> None: ...

class Stretches:
    def __init__(self, rules: Rules, scores: Scores, all_limits: bool, most_hits: int) -> None: ...
    def append(self, stretch: Stretch) -> None: ...
    def count(self) -> None: ...
    def work(self) -> None: ...
