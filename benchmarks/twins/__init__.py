"""Small models of our own with the patterns of models whose code is on the hub, and so not at hand."""
