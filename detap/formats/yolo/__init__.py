"""YOLO's text files: a file an image, a box or a polygon a line, in fractions of the image."""
