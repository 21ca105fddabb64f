from collections.abc import Iterable

class IdTable:
    def __init__(self, ids: Iterable[int]) -> None: ...
