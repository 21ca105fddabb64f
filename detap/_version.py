"""The version, as a constant: reading it from the installed metadata costs 10 ms of every start."""

__version__ = "0.1.0"

SCHEMA_VERSION = 2
"""Of JSON reports; increased if a key is removed or changes its meaning, not if one is added."""
