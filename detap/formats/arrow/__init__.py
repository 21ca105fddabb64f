"""Parquet and Arrow files: tables of boxes with the columns that COCO's records have as keys."""
