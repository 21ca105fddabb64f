"""Datumaro: a JSON file per subset, as CVAT exports."""
