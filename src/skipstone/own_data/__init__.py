"""The commands for tables of one's own: fit, forecast and compare."""
