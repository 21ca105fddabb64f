"""Folders of text files with a box a line."""
