"""Runs in many processes: shard workers, parts of Monte Carlo CFR, learners, and Ray, which starts them."""
