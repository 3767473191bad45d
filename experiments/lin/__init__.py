"""The experiments of Lin (2024): runs, matches, and their page."""
