"""CVAT for images 1.1: an XML file of all images."""
