"""Compiled kernels that are kept: whose code they are, and who may run them."""

from tests.mutations.mutation import mutations

MUTATIONS = mutations(r"""
two-signatures-in-one-file: processes that save at once run the code of another signature: values
    are wrong for good
reader/kernels/compiling.py: tests/unit/kernels/test_compiling.py
- index._data_name = name
+ _ = name

kernels-of-changed-sources-kept: code of a newer version is kept as that of the older one, whose
    columns lie elsewhere
reader/kernels/cache.py: tests/unit/kernels/test_cache.py
- return any(changed_ns(module) > since_ns for module in modules)
+ return all(changed_ns(module) > since_ns for module in modules)

upgraded-before-the-first-kernel: a process that is upgraded before it decodes keeps kernels of both
    versions for good
reader/__init__.py: tests/unit/kernels/test_cache.py
- import reader.kernels.begun  # noqa
+ import reader.errors  # noqa

relative-import-in-a-kernel: after a change of the imported module the old machine code goes on
    running
reader/decode/passes/column_memory.py: tests/unit/kernels/test_cache.py
- from reader.decode.passes.copies import copy
+ from .copies import copy
""")
