"""Analyses of results: errors, calibration, comparison, intervals and explanations."""
