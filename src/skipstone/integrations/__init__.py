"""Doors to other frameworks: each one file, each an extra, each loaded only when it is used."""
