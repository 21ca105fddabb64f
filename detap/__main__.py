"""``python -m detap`` and the console script."""

import gc
import os
import sys
from types import TracebackType


def main() -> None:
    """Run the command line and exit with its status."""
    gc.disable()  # saves 0.006 s; a short run with large arrays has no cycles to free
    sys.unraisablehook = _handle_unraisable
    # NumPy starts the threads of linear algebra, which only rankings use, when it is imported.
    if "rank" not in sys.argv:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from detap.cli import run

        run()
    except KeyboardInterrupt as interrupt:  # or SIGTERM, with its own status
        os._exit(getattr(interrupt, "status", 130))
    except BaseException as error:  # not Python's status 1, which means a failed gate
        no_memory = isinstance(error, MemoryError | SystemError) or "failed to map" in str(error)
        text = " ".join(f"{type(error).__name__}: {error}".split())
        reason = "out of memory" if no_memory else text
        os.write(2, f"Error: detap cannot start ({reason})\n".encode(errors="replace"))
        os._exit(3)


def _handle_unraisable(error: "sys.UnraisableHookArgs") -> None:
    """Handle an interrupt within a callback, which Python would only print.

    It ends the process while the command line is imported. Later, signal handlers of detap raise a
    subclass and keep the status, so that files being written are cleaned up. In a callback of
    importlib it ends the process too: the lock of all imports may be kept, for which threads would
    wait forever.
    """
    if not issubclass(error.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(error)
    elif error.exc_type is KeyboardInterrupt or _is_in_importlib(error.exc_traceback):
        os._exit(getattr(error.exc_value, "status", 130))


def _is_in_importlib(traceback: TracebackType | None) -> bool:
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        traceback = traceback.tb_next
    return False


if __name__ == "__main__":
    main()
