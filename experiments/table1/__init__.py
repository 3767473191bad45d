"""Table 1 of the Deep CFR paper: runs, matches, and their page."""
