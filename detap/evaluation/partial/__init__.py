"""Match results of whole images as bytes that merge exactly."""

from detap.evaluation.partial.partial import Partial, merge

__all__ = ["Partial", "merge"]
