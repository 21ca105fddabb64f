"""Open Images: CSV files of boxes in fractions of the image's size."""
