"""Benchmarks: commands that print the figures which the documentation quotes."""
