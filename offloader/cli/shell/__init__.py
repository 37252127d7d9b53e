"""``pulsar-lake sql``: the shell, and how any of its statements runs.

    backslash   the shell's own commands
    completion  what Tab offers: pure
    execution   a statement in a thread of its own; Spark started in the background
    keywords    words of Spark SQL, for completion
    loop        the shell: reads, runs and shows, until its user leaves
    progress    how far a statement is: a line on standard error
    prompt      the line editor: history, completion, colours
    runner      runs statements, and translates Spark's errors
    screen      results on a terminal: cut, in a pager
    state       what a shell has: session, output, switches
    statements  SQL text split by Spark's rules: pure

``completion`` and ``prompt`` alone need prompt_toolkit. They are imported while Spark starts.
"""
