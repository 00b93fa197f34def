"""The virtual world: everything that the refund service is tried in, on SimPy."""
