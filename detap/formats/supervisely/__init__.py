"""Supervisely: a JSON file per image, in the ``ann`` folder of a data set."""
