"""Where the JSON schemas of reports are found, each at an address of its own."""

NAMES = ("report", "comparison", "check", "ranking", "image", "explanation", "history")
"""What has a schema, by what it is called."""

PAGES = "https://detap.example"
"""Where the project's pages are. The domain is one that nobody can have, until there are pages."""


_VERSIONS = {"settings": 1}
"""Schemas whose version is not that of the reports."""


def address(name: str) -> str:
    """Return where a schema is published: its ``$id``, which holds its version."""
    return f"{PAGES}/schemas/{name}-{_VERSIONS.get(name, 2)}.json"
