"""``python -m simulator``: the same program as ``coband``."""

from simulator.cli.main import main

if __name__ == "__main__":
    main()
