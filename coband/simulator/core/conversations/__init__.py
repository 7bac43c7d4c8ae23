"""Conversations: protocols that are written in the order of the paper's steps, as questions and answers.

What becomes of a question that is lost, doubled or late is decided here, once for all protocols. Numbers and
mathematics belong to the nodes.
"""

from coband.simulator.core.conversations.question import Answers, Declined, Line, Unanswered
from coband.simulator.core.conversations.talks import Talks, late, lost, on

__all__ = ["Answers", "Declined", "Line", "Talks", "Unanswered", "late", "lost", "on"]
