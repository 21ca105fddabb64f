"""Evaluation in a training loop: evaluator.py, batches.py, name_index.py."""
