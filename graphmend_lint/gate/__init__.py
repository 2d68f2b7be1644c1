"""What `graphmend check` is made of: what is new, by a committed baseline, by git, and by measurement."""
