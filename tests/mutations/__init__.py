"""Whether the tests find faults: mutations of the product, and a runner that puts in one at a time.

    mutation   a mutation, and how it is put into a copy of the tree
    catalogue  the mutations, by what a user would lose
    tree       a copy of the tree, in which tests are run
    runner     the stages of tests that one mutation meets, until a test finds it
    report     the table of results, as Markdown

The mutations are written by hand, where meaning counts: a tool changes operators and constants, and
most of its mutants change nothing that a user could see. Each one names its exact old text, which
has to be in its file exactly once. So a catalogue that has rotted fails (``make check``).
"""
