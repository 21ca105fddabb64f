"""``python -m detap`` and the console script."""

import os


def main() -> None:
    """Run the command line and exit with its status."""
    try:
        from detap.cli import run  # imported only when a command is run

        run()
    except KeyboardInterrupt:
        os._exit(130)
    except BaseException as error:  # Python's own status for it, 1, is that of a failed gate
        short = isinstance(error, MemoryError) or "failed to map" in str(error)
        what = "out of memory" if short else " ".join(f"{type(error).__name__}: {error}".split())
        os.write(2, f"Error: detap cannot start ({what})\n".encode(errors="replace"))
        os._exit(3)


if __name__ == "__main__":
    main()
