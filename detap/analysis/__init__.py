"""Where a detector errs: numbers made from what became of each detection.

Each module takes a :class:`~detap.results.Result` (or an :class:`~detap.analysis.outcome.Outcome`
of it, made once for several questions) and gives a small frozen dataclass of arrays. No text is
made here: that is the affair of ``report``.
"""
