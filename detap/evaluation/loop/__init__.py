"""Scoring in a training loop: the door (evaluator.py), ragged batches as columns (batches.py), and
names that become numbers as they come (name_index.py).
"""  # noqa: D205 - one thought
