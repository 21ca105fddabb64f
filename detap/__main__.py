"""``python -m detap`` and the console script."""


def main() -> None:
    """Run the command line and exit with its status."""
    try:
        from detap.cli import run  # noqa: PLC0415 - imported only when a command is run
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    run()


if __name__ == "__main__":
    main()
