"""Runs, judgments, galleries and samples."""
