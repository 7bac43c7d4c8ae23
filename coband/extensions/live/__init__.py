"""The same nodes on real sockets: agents and servers in several processes, over TCP.

Nodes, hosts, schedule, links and ledger are those of the simulator. What is different is what drives them: instead of
one queue of events there is one for each process, run by the clock on the wall, and what leaves a link is written to a
socket. Only here are sockets, and clocks that decide anything.

* ``machine``: the nodes of one process and all that is around them, up to the socket; a function of what it is given.
  Its ``Pump`` gives it what its clock and its sessions bring;
* ``transport``: links and retransmission, with the two ends in two processes;
* ``schema``: everything that hub and stations say to each other; ``frames``, ``codec``: how it is written, and what of
  it is accepted;
* ``listener``: who may say anything at all; ``config``: terms of a run, refusals, nodes that fail;
* ``station``: a process with agents; ``hub``: the process with the server, to which all stations are connected;
* ``deployment``: starts all processes of a run, and jobs of a study; ``reports``, ``merging``: one trace, ledger and
  result of them all.
"""

from coband.extending import Command, Extension

EXTENSION = Extension(
    "live",
    {"live": Command("coband.extensions.live.command:live", "Run a scenario with processes that talk over sockets.")},
)
