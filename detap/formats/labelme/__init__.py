"""LabelMe: one JSON file per image."""
