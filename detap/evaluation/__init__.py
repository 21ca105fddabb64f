"""Evaluation of detections.

In execution order: load (``detap.formats``), prepare (prepare.py), match and accumulate (match.py),
summarize (results.py). Entry points are in scoring.py and detection.py.
"""
