"""Masks, compared pixel by pixel, and their boundaries, whichever have less in common."""

from detap.evaluation.overlaps.masks import MaskShapes


class BoundaryShapes(MaskShapes):
    """Masks of which the boundaries count too."""

    @property
    def dilation_ratio(self) -> float:
        """As :attr:`MaskShapes.dilation_ratio`, of the rules."""
        return self.rules.dilation_ratio
