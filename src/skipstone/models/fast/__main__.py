"""Build the fast path ahead of its first use: `python -m skipstone.models.fast`."""

import logging

from skipstone.models.fast import build

logging.basicConfig(level=logging.INFO, format="%(message)s")
for dtype in build.PRECISIONS:
    if build.library(dtype) is not None:
        print(f"The fast path for {dtype} is ready in {build.cache_folder()}.")
