"""The refund service: written once, run in virtual time and for real.

Nothing here knows SimPy, or the world that the service is tried in.
"""
