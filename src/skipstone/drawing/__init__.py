"""What every picture is drawn with: one style, labels, panels and videos. Knows no task."""
