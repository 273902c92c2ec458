"""The pictures of the paper and of its report."""
