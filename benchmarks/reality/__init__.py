"""Real data beside the peers that people would pick instead: `make reality`."""
