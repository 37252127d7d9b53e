"""How many examples a Hypothesis test tries: all of them, or a share for the quick runs.

``full`` holds unless another profile is asked for. ``--hypothesis-profile=check`` tries a tenth:
`make check`, `make test`, `make test-servers`, CI. `make test-nightly` tries all of them.
"""

from hypothesis import HealthCheck, settings

_FULL = 100  # Hypothesis's own default
_SHARE = 10
_FEWEST = 5


def register_profiles() -> None:
    """Before Hypothesis reads the command line: at the import of tests/conftest.py."""
    # How long an example takes says how busy the machine is.
    calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("full", calm, max_examples=_FULL)
    settings.register_profile("check", calm, max_examples=_FULL // _SHARE)
    settings.load_profile("full")


def examples(full: int) -> int:
    """For ``@settings(max_examples=…)``: ``full``, or its share under the profile ``check``."""
    share = settings().max_examples / _FULL
    return full if share == 1 else max(_FEWEST, round(full * share))
