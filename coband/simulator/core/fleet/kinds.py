"""The populations that scenarios can name."""

from __future__ import annotations

from typing import Annotated

from coband.simulator.core.fleet.populations import BasePopulation, FilePopulation
from coband.simulator.core.fleet.presets import Preset
from coband.simulator.core.fleet.public import FedScale, Flash
from coband.simulator.plugins.kinds import Kinds

POPULATIONS: Kinds[type[BasePopulation]] = Kinds.of(
    "populations", BasePopulation, (FilePopulation, Flash, FedScale, Preset)
)
"""Where the devices of agents can come from."""
Population = Annotated[BasePopulation, POPULATIONS.field()]
