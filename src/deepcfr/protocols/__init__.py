"""What the field's other programs speak: the ACPC dealer protocol, and hand histories in PHH."""
