"""Shared code of CVAT and LabelMe: shapes other than boxes, and flags."""
