"""`python -m skipstone`: the command, where its script is not on the path."""

from skipstone.cli import main

main()
