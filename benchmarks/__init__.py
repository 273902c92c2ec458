"""Speed, beside peers: `make bench`. How to read the numbers: docs/performance.md."""
