"""Evaluation in a training loop: evaluator.py, batches.py."""
