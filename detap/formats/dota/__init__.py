"""DOTA labels and Task1 results: text files of rotated boxes."""
