"""Compiled kernels that are kept: whose code they are, and who may run them."""

from tests.mutations.mutation import Mutation

_CACHE = "tests/unit/kernels/test_cache.py"

MUTATIONS = (
    Mutation(
        "two-signatures-in-one-file",
        "reader/kernels/compiling.py",
        "index._data_name = name",
        "_ = name",
        "processes that save at once run the code of another signature: values are wrong for good",
        ("tests/unit/kernels/test_compiling.py",),
    ),
    Mutation(
        "kernels-of-changed-sources-kept",
        "reader/kernels/cache.py",
        "return any(changed_ns(module) > since_ns for module in modules)",
        "return all(changed_ns(module) > since_ns for module in modules)",
        "code of a newer version is kept as that of the older one, whose columns lie elsewhere",
        (_CACHE,),
    ),
    Mutation(
        "upgraded-before-the-first-kernel",
        "reader/__init__.py",
        "import reader.kernels.begun  # noqa",
        "import reader.errors  # noqa",
        "a process that is upgraded before it decodes keeps kernels of both versions for good",
        (_CACHE,),
    ),
    Mutation(
        "relative-import-in-a-kernel",
        "reader/decode/passes/column_memory.py",
        "from reader.decode.passes.copies import copy",
        "from .copies import copy",
        "after a change of the imported module the old machine code goes on running",
        (_CACHE,),
    ),
)
