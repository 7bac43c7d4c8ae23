"""Public datasets: ``coband data`` downloads them, verifies their checksums and lists them."""

from coband.extending import Command, Extension

EXTENSION = Extension(
    "data", {"data": Command("coband.extensions.data.command:data", "Fetch public datasets and list them.")}
)
