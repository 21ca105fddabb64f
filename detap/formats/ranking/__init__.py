"""Runs, judgements, galleries and samples."""
