"""Models: `base.py` is their contract, its siblings are the implementations."""
