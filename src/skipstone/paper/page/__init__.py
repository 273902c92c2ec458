"""The report page: one file with tables, figures, videos and a viewer that replays examples."""

from skipstone.paper.page.content import VIDEO_TYPES, Figure, Table, Video
from skipstone.paper.page.write import write_page

__all__ = ["VIDEO_TYPES", "Figure", "Table", "Video", "write_page"]
