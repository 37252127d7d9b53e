"""CPU and memory of other processes, out of /proc."""

import os
import subprocess
import sys

from testbed import usage

_GRANDCHILD = (
    "import subprocess, sys\n"
    "work = 'for i in range(10**7): pass\\ninput()'\n"
    "subprocess.run([sys.executable, '-c', work])\n"
    "sys.stdout.write('done\\n'); sys.stdout.flush(); sys.stdin.read()\n"
)


def test_a_child_that_has_ended_still_counts() -> None:
    command = [sys.executable, "-c", _GRANDCHILD, "marked"]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    before = usage.cpu_seconds()
    child.stdin.write(b"\n")
    child.stdin.flush()
    child.stdout.readline()
    assert child.pid in usage.descendants(os.getpid())
    with_child = usage.cpu_seconds(child.pid) - before
    child.communicate()
    assert with_child > 0.1
    assert child.pid not in usage.descendants(os.getpid())


def test_cpu_of_one_process_alone() -> None:
    work = "for i in range(10**7): pass\nprint(flush=True)\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", work], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert 0.05 < usage.process_seconds(child.pid, None) < usage.cpu_seconds(child.pid)
        assert child.pid in usage.process_ids()
        assert usage.command_name(child.pid).startswith("python")
        assert usage.shared_bytes(child.pid) > 1 << 20
        child.kill()
    assert usage.process_seconds(child.pid) == 0
    assert child.pid not in usage.process_ids()
    assert (usage.command_name(child.pid), usage.shared_bytes(child.pid)) == ("", 0)
