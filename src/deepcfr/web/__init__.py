"""The web application: play an agent, look inside it, watch runs; everything comes from this machine."""
