"""Array types, errors, files, random streams, threads, signals: what every other room uses."""
