"""LabelMe: a JSON file an image, beside it."""
