"""Making the nodes of a run and the hosts around them; `core.assembly` makes the rest."""
