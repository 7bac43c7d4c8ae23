"""Regions of a domain: points that hang together, in the order of their first points."""

import numpy as np

from coband.simulator.maths.exploration.duets import Regions


def test_regions_stand_in_the_order_of_their_first_points() -> None:
    """The first region may end after the second one, and begin before it."""
    places = np.array([0.0, 1.0, 2.0, 4.9, 5.0, 3.0, 4.0, 0.5, 1.5, 0.1])
    found = Regions(places[:, None]).of(np.array([0, 3, 4, 9]))
    assert [region.tolist() for region in found] == [[0, 9], [3, 4]]
