"""Reinforcement learning by self-play: Neural Fictitious Self-Play, and regularised policy gradients."""
