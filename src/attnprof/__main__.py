"""`python -m attnprof` is `attnprof`."""

from attnprof.cli.main import main

main()
