"""The populations that scenarios can name."""

from __future__ import annotations

from typing import Annotated

from coband.simulator.core.populations.populations import BasePopulation, FilePopulation
from coband.simulator.core.populations.presets import Preset
from coband.simulator.core.populations.public import FedScale, Flash
from coband.simulator.plugins.kinds import Kinds

POPULATIONS: Kinds[type[BasePopulation]] = Kinds.of(
    "populations", BasePopulation, (FilePopulation, Flash, FedScale, Preset)
)
"""Where the devices of agents can come from."""
Population = Annotated[BasePopulation, POPULATIONS.field()]
