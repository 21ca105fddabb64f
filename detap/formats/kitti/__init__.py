"""KITTI's labels and results: a text file for each image, a line for each object."""
