"""Neural Fictitious Self-Play (Heinrich and Silver 2016): the solver and its own parts."""
