"""The report page: one file with tables, figures, videos and a viewer that replays examples."""

from skipstone.reproduce.page.content import VIDEO_TYPES, Figure, Table, Video
from skipstone.reproduce.page.write import write_page

__all__ = ["VIDEO_TYPES", "Figure", "Table", "Video", "write_page"]
