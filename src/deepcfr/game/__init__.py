"""Games: rules as data, public trees, cards, deals and payoffs."""
