"""Evaluation of detections.

In execution order: load (``detap.formats``), prepare (run.py), match (``detap.core.matching``,
kitti.py), accumulate (``detap.core.accumulate``), summarize (results.py). Entry points are in
detection.py.
"""
