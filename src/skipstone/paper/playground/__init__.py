"""The playground: one page on which visitors set balls up, and the models predict in the browser."""

from skipstone.paper.playground.write import PLAYGROUND, find_players, write_playground

__all__ = ["PLAYGROUND", "find_players", "write_playground"]
