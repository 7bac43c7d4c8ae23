"""Conversations: protocols that are written in the order of the paper's steps, as questions and answers.

What becomes of a question that is lost, doubled or late is decided here, once for all protocols. Numbers and
mathematics belong to the nodes.
"""

from coband.simulator.core.talks.conversation import Line as Line
from coband.simulator.core.talks.question import Answers as Answers
from coband.simulator.core.talks.question import Declined as Declined
from coband.simulator.core.talks.question import Unanswered as Unanswered
from coband.simulator.core.talks.talks import Talks as Talks
from coband.simulator.core.talks.talks import late as late
from coband.simulator.core.talks.talks import lost as lost
from coband.simulator.core.talks.talks import on as on
