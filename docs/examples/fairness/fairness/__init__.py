"""Who bears the regret: a panel of the report, and a command."""

from coband.extending import Command, Extension

EXTENSION = Extension(
    "fairness",
    commands={"fairness": Command("fairness.agents:fairness", "Print the regret of the best and the worst agent.")},
    panels={"fairness": "fairness.agents:PANEL"},
)
