"""Protocols that other poker programs speak: the ACPC dealer protocol, and hand histories in PHH."""
