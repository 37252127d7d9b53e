"""The cores of a container: what a JVM would count, not the machine's."""

from pathlib import Path

import pytest

from spark_ext.session.cores import usable_cores


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, 64),
        ({"sys/fs/cgroup/cpu.max": "max 100000\n"}, 64),
        ({"sys/fs/cgroup/cpu.max": "150000 100000\n"}, 2),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "400000 100000\n"}, 4),
        (
            {
                "proc/self/cgroup": "3:cpu,cpuacct:/docker/x\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "200000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            2,
        ),
        (
            {
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            64,
        ),
    ],
)
def test_a_container_has_fewer_cores_than_its_machine(
    files: dict[str, str], cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(64)), raising=False)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert usable_cores(tmp_path) == cores
