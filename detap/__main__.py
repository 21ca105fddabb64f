"""``python -m detap`` and the console script."""

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sys import UnraisableHookArgs


def main() -> None:
    """Run the command line and exit with its status."""
    gc.disable()  # a short life with large arrays: looking for cycles costs 0.006 s and finds none
    sys.unraisablehook = _end_or_hush
    try:
        from detap.cli import run  # imported only when a command is run

        run()
    except KeyboardInterrupt as interrupt:  # or SIGTERM, which comes as one that knows its status
        os._exit(getattr(interrupt, "status", 130))
    except BaseException as error:  # Python's own status for it, 1, is that of a failed gate
        short = isinstance(error, MemoryError | SystemError) or "failed to map" in str(error)
        what = "out of memory" if short else " ".join(f"{type(error).__name__}: {error}".split())
        os.write(2, f"Error: detap cannot start ({what})\n".encode(errors="replace"))
        os._exit(3)


def _end_or_hush(what: "UnraisableHookArgs") -> None:
    """Take an interrupt that Python would show and forget, as it comes within a callback.

    While the command line is being imported, that ends the process. Later it is one of its own,
    which is remembered: nothing that is being written is left behind.
    """
    if what.exc_type is KeyboardInterrupt:
        os._exit(130)
    if not issubclass(what.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(what)


if __name__ == "__main__":
    main()
