"""The options of ``format("pulsar")`` that name what is read, and by which settings."""

from collections.abc import Mapping

from reader.errors import ConfigurationError
from reader.model import Topic

_READ_OPTIONS = ("topic", "tiers", "config")


def read_options(options: Mapping[str, str], config: str | None) -> tuple[Topic, str | None]:
    """Return the topic that a batch query reads, and the tier that it forces.

    Raises ConfigurationError for other options, a wrong topic and other settings than ``config``.
    """
    require_settings(options, config)
    values = {}
    for name, value in options.items():
        if name.lower() not in _READ_OPTIONS:
            raise ConfigurationError(
                f"a query has no option {name}", hint="one of " + ", ".join(_READ_OPTIONS)
            )
        values[name.lower()] = value
    if not values.get("topic"):
        raise ConfigurationError(
            'format("pulsar") needs a topic', hint='.option("topic", "tenant/namespace/topic")'
        )
    return Topic.parse(values["topic"]), values.get("tiers")


def require_settings(options: Mapping[str, str], config: str | None) -> None:
    """Raise ConfigurationError if an option chooses other settings than the catalog's."""
    if any(value != config for name, value in options.items() if name.lower() == "config"):
        raise ConfigurationError(
            "the settings of Pulsar cannot be chosen by an option",
            hint="leave it out: they are the catalog's, which are set before Spark starts",
        )
