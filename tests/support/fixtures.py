"""Types of fixtures that several folders have."""

from collections.abc import Callable

from offloader.config import Config

Offload = Callable[[str], None]
"""Offloads a topic of the shared cluster."""

MakeConfig = Callable[..., Config]
"""Makes settings of a role."""
