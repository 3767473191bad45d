"""Lin's experiments: runs, matches, and their page."""
