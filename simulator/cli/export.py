"""``coband export``: hand a stored run to an experiment tracker."""

from __future__ import annotations

from pathlib import Path

import click

from coband.simulator.cli.options import BadInput
from coband.simulator.cli.runs import RUN, RUNS_HELP
from coband.simulator.cli.trace.common import opened

FOLDER = "tensorboard"


@click.command(epilog=RUNS_HELP)
@RUN
@click.option("--to", "tracker", type=click.Choice(["mlflow", "tensorboard"]), required=True, help="Which tracker.")
@click.option("--experiment", metavar="NAME", help="Experiment of MLflow; by default the name of the scenario.")
@click.option(
    "--out",
    metavar="DIR|URI",
    help=f"MLflow: tracking URI or directory, by default MLflow's own. TensorBoard: log directory, by default {FOLDER} "
    "in the run directory.",
)
def export(path: Path, tracker: str, experiment: str | None, out: str | None) -> None:
    """Export a run or a sweep to MLflow or TensorBoard: a run of the tracker for each finished job.

    Each has the parameters of its algorithm and of its scenario, its results, and regret, scalars and simulated time
    against turns.
    """
    from coband.simulator.analysis import trackers

    if experiment is not None and tracker != "mlflow":
        raise BadInput("--experiment is for --to mlflow.")
    try:
        with opened(path) as run:
            if tracker == "mlflow":
                place, count = trackers.to_mlflow(run, out, experiment)
            else:
                folder = Path(out) if out is not None else (path if path.is_dir() else path.parent) / FOLDER
                place, count = str(folder), trackers.to_tensorboard(run, folder)
    except ImportError as error:
        package = {"mlflow": "mlflow-skinny", "tensorboard": "tensorboardX"}[tracker]
        raise BadInput(f"--to {tracker} needs {package}: pip install 'coband[{tracker}]'.") from error
    click.echo(f"{count} jobs: {place}")
