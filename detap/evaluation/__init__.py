"""Evaluation of detections.

In execution order: load (``detap.formats``), prepare (prepare.py), match (match.py), accumulate
(``detap.core.matching``), summarize (results.py). Entry points are in detection.py.
"""
