"""Conversions without Spark: in the thread that asks for them."""

from collections.abc import Sequence
from typing import Any

from offloader.convert import Conversion, ConversionJobs, ConvertedPack
from offloader.convert.conversion import ConversionOutcome
from offloader.convert.pack_task import try_pack
from reader.clients import Clients
from reader.errors import PulsarLakeError


class InThreadJobs(ConversionJobs[Any]):
    """With this process's clients."""

    def __init__(self, clients: Clients) -> None:
        super().__init__(_no_spark, _no_job)
        self._clients = clients

    def convert(self, conversion: Conversion) -> tuple[ConvertedPack, ...]:
        conversion.begun()
        found = []
        for pack in conversion.packs:
            outcome = try_pack(conversion.spec, pack, self._clients)
            if isinstance(outcome, PulsarLakeError):
                raise outcome
            assert isinstance(outcome, ConvertedPack)
            found.append(outcome)
        return tuple(found)


def no_jobs() -> ConversionJobs[Any]:
    """For an offloader that converts nothing."""
    return ConversionJobs(_no_spark, _no_job)


def _no_spark() -> Any:
    raise AssertionError("nothing here needs Spark")


def _no_job(context: Any, conversions: Sequence[Any], *, pool: str) -> list[ConversionOutcome]:
    raise AssertionError("nothing here needs Spark")
