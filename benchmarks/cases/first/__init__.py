"""Cases of first queries, in new processes for the most part.

first_answer  `pulsar-lake sql` and `head`, from Enter to the answer, beside a plain PySpark script
cold_path     a session's first cold query, and planning of many files, beside Delta's own scan
cold_kernels  the first hot query without any compiled kernel
"""
