"""Detections of Roboflow's hosted models: one JSON file per image."""
