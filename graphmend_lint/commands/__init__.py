"""The commands of `graphmend`, one a file; `graphmend_lint.cli` gathers them."""
