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
    ) -> None: ...
    def work(self) -> None: ...

class Stretches:
    def __init__(
        self,
        rules: Rules,
        scores: Scores,
        ranking: Ranking,
        outcomes: Outcomes,
        most_hits: int,
    ) -> None: ...
    def go_down(self, ranking: Ranking, code: NDArray[np.uint32]) -> None: ...
    def write(self) -> None: ...
