"""Rankings: retrieval, classification by scores, and average precision as an objective.

The average precision is that of detection: :mod:`detap.core.curves` computes all of them.
"""

from detap.protocols import ranking as protocols

__all__ = ["protocols"]
