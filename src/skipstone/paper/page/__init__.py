"""The report page: one file with tables, figures, videos and a viewer that replays examples."""

from skipstone.paper.page.cards import VIDEO_TYPES, FigureCard, TableCard, VideoCard
from skipstone.paper.page.write import write_page

__all__ = ["VIDEO_TYPES", "FigureCard", "TableCard", "VideoCard", "write_page"]
