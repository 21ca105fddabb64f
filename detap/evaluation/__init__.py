"""Evaluation of detections."""
