"""Probes of a machine's ceilings: each is one kernel of known work, timed on a device."""
