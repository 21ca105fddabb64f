"""Shared code of labelling tools: readers, shapes other than boxes, and flags."""
