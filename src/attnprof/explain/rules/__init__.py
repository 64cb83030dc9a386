"""The dispatcher's rules: data per PyTorch version, and the checks that read them."""
