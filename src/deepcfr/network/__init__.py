"""Networks, losses and fits."""
