"""`python -m redclf` is the `redclf` command."""

from redclf.cli import main

if __name__ == "__main__":
    main()
