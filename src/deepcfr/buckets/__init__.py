"""Card abstraction: features of hands, buckets of hands, and the files that hold them."""
