"""Parquet and Arrow files with the keys of COCO records as columns."""
