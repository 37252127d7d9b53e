"""Service.

console              What the daemon says on stderr: log lines, and on a terminal a progres
daemon               The offloader as a process: what the scheduler needs of the outside wo
last_errors          What the daemon last failed with, for ``status``: a small file on this
metrics              What is counted and timed, as Prometheus metrics with a registry of th
monitor              What the offloader did lately, kept in memory for those who watch (``w
signals              Ctrl-C and SIGTERM: the first lets the running commit finish, the seco
status               How far each topic is: its table's log beside Pulsar's ledger lists, a
"""

__all__: list[str] = []
