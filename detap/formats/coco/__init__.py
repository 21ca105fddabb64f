"""COCO instances and results files."""
