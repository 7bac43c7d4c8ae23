"""``python -m coband``: the same program as ``coband``."""

from coband.simulator.cli.main import main

if __name__ == "__main__":
    main()
