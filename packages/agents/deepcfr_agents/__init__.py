"""Run folders of trained agents, one for each folder here; `deepcfr models` lists them."""
