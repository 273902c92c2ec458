"""Training: recipes, the loop, and runs on disk. Only `fit` itself needs Lightning."""
