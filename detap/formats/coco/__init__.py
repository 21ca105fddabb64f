"""COCO: ground truth and results, in JSON."""
