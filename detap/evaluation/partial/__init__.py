"""What remains of whole images after matching, in bytes that add up."""

from detap.evaluation.partial.partial import Partial, merge

__all__ = ["Partial", "merge"]
