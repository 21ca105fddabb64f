"""CVAT for images 1.1: one XML file for all images."""
