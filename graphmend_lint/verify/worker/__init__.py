"""The code of an arm's process: the only part of the package that imports torch and runs the user's code."""
