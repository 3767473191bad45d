"""A person plays against an agent: single hands, terminal sessions, reviews of hands, and costs of decisions."""
