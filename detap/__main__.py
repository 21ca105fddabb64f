"""``python -m detap`` and the console script."""


def main() -> None:
    """Run the command line and exit with its status."""
    from detap.cli import run  # noqa: PLC0415 - imported only when a command is run

    run()


if __name__ == "__main__":
    main()
