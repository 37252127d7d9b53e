"""The sub-commands of ``pulsar-lake``, one file each; ``offloader.cli.app`` puts them together."""

__all__: list[str] = []
