"""Settings of lxml's parsers for files that nobody has checked."""

from typing import Any

SAFE: dict[str, Any] = {
    "resolve_entities": False,
    "no_network": True,
    "load_dtd": False,
    "dtd_validation": False,
    "attribute_defaults": False,
    "remove_comments": True,
    "remove_pis": True,
    "huge_tree": False,
}
"""No entity is expanded, nothing is loaded, and libxml2's own limits hold."""
