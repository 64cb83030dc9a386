"""Kernels that attnprof writes itself; importing a module of it imports torch and triton."""
