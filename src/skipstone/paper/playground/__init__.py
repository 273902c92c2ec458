"""The playground: a page on which visitors set balls up, and models predict in their browser."""

from skipstone.paper.playground.write import PLAYGROUND, find_players, write_playground

__all__ = ["PLAYGROUND", "find_players", "write_playground"]
