"""The `skipstone` command and `python -m skipstone`. Next to nothing is imported before `main`, so
that Ctrl-C is answered from the first moment on."""

import sys


def main() -> None:
    """Run the command; Ctrl-C while it is still being imported ends it in one line."""
    try:
        from skipstone.cli import main as run_command

        run_command()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
