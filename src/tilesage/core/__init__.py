"""What has nothing to do with games, and everything else stands on.

Compiled code and its cache on disk, Ctrl-C, files that appear when they are whole, errors that a user can put right,
random numbers, names that are imported when first used. In come functions, paths and seeds; nothing here knows a
board.
"""
