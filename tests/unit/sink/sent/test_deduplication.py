"""Deduplication is turned on where it is not, waited for, or asked for in words."""

from typing import Any, cast

import pytest

from reader.clients import Clients
from reader.config import EncryptionConfig, ReadConfig
from reader.errors import ConfigurationError, UnavailableError
from reader.model import Partition, Topic
from reader.sink import public_keys, require_deduplication
from tests.unit.encode.messages.encoding import public_rsa

TOPIC = Topic("t", "n", "x")


class Admin:
    """Of two partitions, whose brokers come round to a policy after so many questions."""

    def __init__(self, on: bool = False, after: int = 0, allowed: bool = True) -> None:
        self.on = [on, on]
        self.after = after
        self.allowed = allowed
        self.enabled = 0

    def partitions(self, topic: Topic) -> list[Partition]:
        assert topic == TOPIC
        return [Partition(TOPIC, index) for index in range(2)]

    def deduplicates(self, partition: Partition) -> bool:
        if self.enabled:
            self.after -= 1
        if self.enabled and self.after <= 0:
            self.on[partition.index] = True
        return self.on[partition.index]

    def enable_deduplication(self, topic: Topic) -> None:
        if not self.allowed:
            raise ConfigurationError("no", hint="Topic level policies is disabled")
        self.enabled += 1


def clients_of(admin: Admin) -> Clients:
    class Only:
        settings = ReadConfig.load({"pulsar": {"timeout": "10s"}})

    found: Any = Only()
    found.admin = admin
    return cast(Clients, found)


def require(admin: Admin, *, enable: bool = True) -> list[float]:
    """How long it has slept."""
    slept: list[float] = []
    require_deduplication(
        clients_of(admin), TOPIC, enable=enable, clock=lambda: sum(slept), sleep=slept.append
    )
    return slept


def test_it_is_on() -> None:
    admin = Admin(on=True)
    for enable in (True, False):
        assert require(admin, enable=enable) == []
    assert admin.enabled == 0


@pytest.mark.parametrize("after", [0, 1, 2, 9])
def test_it_is_turned_on_and_waited_for(after: int) -> None:
    admin = Admin(after=after)
    slept = require(admin)
    assert admin.on == [True, True]
    assert admin.enabled == 1
    assert sum(slept) < 10


def test_one_partition_is_not_yet_there() -> None:
    admin = Admin(after=3)
    admin.on[0] = True
    require(admin)
    assert admin.on == [True, True]


def test_brokers_that_do_not_come_round_to_it() -> None:
    with pytest.raises(UnavailableError, match=r"turned on for .*, but not in force on .*x"):
        require(Admin(after=1 << 30))


def test_it_may_not_be_turned_on() -> None:
    for admin, enable, why in (
        (Admin(), False, "enableDeduplication is false"),
        (Admin(allowed=False), True, "Topic level policies is disabled"),
    ):
        with pytest.raises(ConfigurationError) as caught:
            require(admin, enable=enable)
        assert caught.value.message.endswith(f"cannot be turned on: {why}")
        assert caught.value.hint is not None
        assert "option delivery = at-least-once" in caught.value.hint
        assert admin.enabled == 0


# -- keys ------------------------------------------------------------------------------------------


def test_public_keys_of_files(tmp_path: Any) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(public_rsa())
    (tmp_path / "bad").write_bytes(b"no key")
    names = {name: str(tmp_path / name) for name in ("a", "b", "bad", "gone")}
    config = EncryptionConfig.model_validate({"public_keys": names})
    assert public_keys(config, []) == {}
    assert public_keys(config, ["b", "a"]) == {"a": public_rsa(), "b": public_rsa()}
    with pytest.raises(ConfigurationError, match="there is no public key 'c'"):
        public_keys(config, ["a", "c"])
    with pytest.raises(ConfigurationError, match="cannot read the public key 'gone'"):
        public_keys(config, ["gone"])
    with pytest.raises(ConfigurationError, match="the public key 'bad' cannot be used"):
        public_keys(config, ["bad"])
