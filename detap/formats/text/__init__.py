"""Folders of text files with one box per line."""
