"""Search: solve the rest of a hand from a public state, for all hands of both players."""
