"""Memories of samples."""
