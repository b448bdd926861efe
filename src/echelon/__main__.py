"""``python -m echelon``: the command line, where its script is not on the path."""

from echelon.cli.main import main

if __name__ == "__main__":
    main()
