"""The space-time diagram of messages: in the page with zoom and the causes of an event, on paper as a picture."""

from coband.extending import Extension

EXTENSION = Extension("diagram", panels={"messages": "coband.extensions.diagram.panel:MESSAGES"})
