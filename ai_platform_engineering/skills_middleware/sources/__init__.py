"""Where skills come from. Each source loads its skills whole and reads their contents one at a time."""
