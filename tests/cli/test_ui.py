"""``coband ui``: the address that it prints, and how it ends."""

import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from tests.cli.fake_cli import Program
from tests.experiments.runs.fake_runs import perform, python


@contextmanager
def serving(root: Path) -> Iterator[subprocess.Popen[str]]:
    code = f"from coband.simulator.cli.main import main; main(['ui', {str(root)!r}])"
    with python(f"import sys; sys.stdout.reconfigure(line_buffering=True)\n{code}") as process:
        yield process


def test_it_prints_an_address_that_opens_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    perform(tmp_path / "one", replications=1, turns=2, count=2)
    with serving(tmp_path) as process:
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        with urlopen(address) as answer:
            assert answer.status == 200
            assert "coband_" in answer.headers["Set-Cookie"]
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0


def test_bad_input(coband: Program) -> None:
    status, output, errors = coband("ui", "nowhere")
    assert (status, output) == (2, "")
    assert errors == "coband: there is no directory nowhere; give the one that has your runs.\n"
    with socket.create_server(("127.0.0.1", 0)) as other:
        status, output, errors = coband("ui", ".", "--port", other.getsockname()[1])
    assert (status, output) == (2, "")
    assert "cannot be used: Address already in use; choose another --port, or 0." in errors
