"""The rules of graphmend-lint, one in each file. Fixit finds them under this package's name: `fixit --rules
graphmend`.
"""
