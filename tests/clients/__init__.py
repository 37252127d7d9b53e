"""What real clients write is what the columns show: random types of each client's language.

    comparison  a column's value beside the value that the client itself reads
    tools       tests are skipped if a tool of a client is missing

Each client encodes without a broker; one test a client sends through a real one.
"""
