"""Write the table into one comment on the pull request, which later runs update."""

import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from service import given, warn

PER_PAGE = 100
HINT = (
    "the job needs 'permissions: pull-requests: write', "
    "which a pull request from a fork is never given"
)


def ask(method: str, path: str, body: str | None = None) -> Any:
    """Call GitHub's API; return its response."""
    request = urllib.request.Request(
        f"{os.environ['GITHUB_API_URL']}/{path}",
        method=method,
        data=None if body is None else json.dumps({"body": body}).encode(),
        headers={
            "Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}",
            "Accept": "application/vnd.github+json",
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def comments(address: str) -> Iterator[dict[str, Any]]:
    """Yield the comments of a pull request, page by page."""
    page = 1
    while True:
        page_comments = ask("GET", f"{address}?per_page={PER_PAGE}&page={page}")
        yield from page_comments
        if len(page_comments) < PER_PAGE:
            return
        page += 1


def is_ours(entry: dict[str, Any]) -> bool:
    """Return True if the token's owner wrote a comment, which may therefore be changed."""
    author = entry["user"] or {"type": "", "login": None}
    if author["type"] == "Bot":
        return True
    try:
        return bool(ask("GET", "user")["login"] == author["login"])
    except urllib.error.HTTPError:  # the token does not belong to a person
        return False


def text(mark: str) -> str:
    """Return the comment, which starts with an invisible marker."""
    run = "{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}/actions/runs/{GITHUB_RUN_ID}"
    where = run.format_map(os.environ)
    path = os.environ.get("SUMMARY", "")
    if path:
        return f"{mark}\n{Path(path).read_text('utf-8')}\n[Full report]({where})\n"
    return f"{mark}\n## detap: no result\n\nSee the [log]({where}).\n"


def main() -> None:
    """Write the comment, or warn, as gates do not depend on it."""
    event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text("utf-8"))
    if "pull_request" not in event:
        print("no pull request: no comment")
        return
    issues = f"repos/{os.environ['GITHUB_REPOSITORY']}/issues"
    address = f"{issues}/{int(event['pull_request']['number'])}/comments"
    mark = f"<!-- detap: {quote(given('name'))} -->"
    try:
        marked = (entry for entry in comments(address) if str(entry["body"]).startswith(mark))
        ours = next(filter(is_ours, marked), None)
        if ours is None:
            ask("POST", address, text(mark))
        else:
            ask("PATCH", f"{issues}/comments/{ours['id']}", text(mark))
    except urllib.error.HTTPError as error:
        hint = f"; {HINT}" if error.code in (401, 403, 404) else ""
        warn(f"the comment could not be written (HTTP {error.code} {error.reason}){hint}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        warn(f"the comment could not be written: {error}")
