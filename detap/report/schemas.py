"""The addresses of the JSON schemas of reports."""

NAMES = (
    *("report", "comparison", "agreement", "check", "ranking", "image", "explanation", "history"),
    *("data_sets", "detectors"),
)
PAGES = "https://detap.example"  # a reserved domain until there are pages
_VERSIONS = {"settings": 1}  # that differ from that of the reports


def address(name: str) -> str:
    """Return the address of a schema: its ``$id``, with its version."""
    return f"{PAGES}/schemas/{name}-{_VERSIONS.get(name, 2)}.json"
