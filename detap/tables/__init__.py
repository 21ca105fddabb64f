"""Tables: what was read, as read-only columns of arrays.

Ground truth and detections (detection.py), runs, galleries and samples (ranking.py), how columns of
the outside world become ours (columns.py), and the notes that tables have (notes.py).
"""
