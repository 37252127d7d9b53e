"""What Spark's Python processes run to read a topic, and to write to one.

    tasks   the tasks of a plan, and a task's rows as Arrow batches
    sink_tasks  the tasks of a write: rows staged, and what is staged sent
    python_daemon  what Spark forks the tasks' Python processes from

What is to be read is planned in ``reader.plan``. Imports ``reader`` and, of this package,
``session``.
"""
