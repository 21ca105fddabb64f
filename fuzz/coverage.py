"""``python -m fuzz.coverage TARGET [libFuzzer options]``: guided by the coverage of the readers.

Needs atheris, which `make fuzz` installs into an environment of its own. The Python code of the
readers is instrumented; the compiled scanners are reached through it, and held to it.
"""

import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["detap.formats"]):
    from fuzz import targets

from fuzz.seeds import SEEDS, TOKENS, TOKENS_OF

WORK = Path(__file__).parent / "cache"


def main() -> None:
    """Fuzz one target until libFuzzer's time or run limit is reached."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in targets.TARGETS:
        sys.exit(f"usage: python -m fuzz.coverage {{{','.join(targets.TARGETS)}}} [-runs=N] ...")
    read = targets.TARGETS[name]
    corpus = WORK / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(SEEDS[name]):
        (corpus / f"seed-{number}").write_bytes(data)
    words = WORK / f"{TOKENS_OF[name]}.dict"
    words.write_text("".join(f'"{_escaped(token)}"\n' for token in TOKENS[TOKENS_OF[name]]))
    options = [f"-dict={words}", f"-artifact_prefix={WORK}/{name}-", "-max_len=4096"]
    line = [sys.argv[0], *options, "-timeout=10", *sys.argv[2:], str(corpus)]
    atheris.Setup(line, lambda data: _one(read, data))
    atheris.Fuzz()


def _one(read: object, data: bytes) -> None:
    assert callable(read)
    read([data])


def _escaped(token: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in token[:60])


if __name__ == "__main__":
    main()
