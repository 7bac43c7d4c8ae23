"""What to do about the file of a graph that is not there."""

from __future__ import annotations

from coband.simulator.core.nodes.graphs import GraphError, NoGraphFileError
from coband.simulator.problems.datasets import data_directory, graph_of


def explained(error: GraphError) -> str:
    """Why a graph cannot be made; where its file is missing, where it was looked for and how to get it."""
    if not isinstance(error, NoGraphFileError):
        return str(error)
    name, known = error.path.name, graph_of(error.path.name)
    get = "Set" if known is None else f"Run `coband data fetch {known.name}` to download it, or set"
    return (
        f"the graph's file {name!r} is missing. Looked for: {error.path}, and {name} in {data_directory()} and its "
        f"folders. {get} `network.topology.file` to a file of links (on the command line: "
        "`--set network.topology.file=FILE`)."
    )
