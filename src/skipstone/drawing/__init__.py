"""The one look of all pictures, and the panels they are made of."""
