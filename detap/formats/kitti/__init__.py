"""KITTI labels and results: one text file per image, one line per object."""
