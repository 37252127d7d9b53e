"""``pulsar-lake sql``: the shell, and how any of its statements runs.

    backslash   the shell's own commands
    completion  what may stand at the cursor: pure
    execution   a statement in a thread of its own; Spark started in the background
    keywords    words of Spark SQL, for completion
    loop        reads, runs and shows, until one leaves
    names       what completion knows of the catalog
    progress    how far a statement is: a line on standard error
    prompt      the line editor: history, completion, colours
    runner      runs statements, brings their results where they are wanted
    screen      results on a terminal: cut, in a pager
    state       what a shell has: session, output, switches
    statements  SQL text taken apart by Spark's rules: pure

``prompt`` alone needs prompt_toolkit, and is imported once somebody types.
"""

__all__: list[str] = []
