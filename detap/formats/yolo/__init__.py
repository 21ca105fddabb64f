"""YOLO's text files: one per image; a line is a normalized box or polygon."""
