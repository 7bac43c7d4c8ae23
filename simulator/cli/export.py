"""``coband export``: hand a stored run to an experiment tracker."""

from __future__ import annotations

from pathlib import Path

import click

from coband.simulator.cli.options import BadInput, out_directory
from coband.simulator.cli.runs import RUN, RUNS_HELP
from coband.simulator.cli.trace.common import opened

FOLDER = "tensorboard"


@click.command(epilog=RUNS_HELP)
@RUN
@click.option("--to", "tracker", type=click.Choice(["mlflow", "tensorboard"]), required=True, help="Which tracker.")
@click.option("--experiment", metavar="NAME", help="Experiment of MLflow; by default the name of the scenario.")
@click.option("--tracking-uri", metavar="URI", help="Where MLflow keeps runs; by default its own choice.")
@out_directory(f"For MLflow, where its database is made; for TensorBoard the log directory, by default RUN/{FOLDER}.")
def export(path: Path, tracker: str, experiment: str | None, tracking_uri: str | None, out: Path | None) -> None:
    """Export a run or a sweep to MLflow or TensorBoard: a run of the tracker for each finished job.

    Each has the parameters of its algorithm and of its scenario, its results, and regret, scalars and simulated time
    against turns.
    """
    from coband.simulator.analysis import trackers

    if tracker != "mlflow" and (experiment, tracking_uri) != (None, None):
        raise BadInput("--experiment and --tracking-uri are for --to mlflow.")
    if tracking_uri is not None and out is not None:
        raise BadInput("give --tracking-uri or --out, not both.")
    try:
        with opened(path) as run:
            if tracker == "mlflow":
                place, count = trackers.to_mlflow(run, tracking_uri or (None if out is None else str(out)), experiment)
            else:
                folder = out or (path if path.is_dir() else path.parent) / FOLDER
                place, count = str(folder), trackers.to_tensorboard(run, folder)
    except ImportError as error:
        package = {"mlflow": "mlflow-skinny", "tensorboard": "tensorboardX"}[tracker]
        raise BadInput(f"--to {tracker} needs {package}: pip install 'coband[{tracker}]'.") from error
    click.echo(f"{count} jobs: {place}")
