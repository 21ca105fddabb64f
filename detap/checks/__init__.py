"""Plausibility checks of valid input: boxes, classes, images and scores that look wrong."""
