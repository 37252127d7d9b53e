"""Programs that tests run and no Python package has, fetched and built once into the cache.

    building  Go, C++, npm and Maven as builders, and the cache that they fill

The standard library alone.
"""

from testbed.programs.building import (
    ProgramError,
    ToolMissingError,
    cpp_build,
    go_build,
    go_program,
    made_once,
    maven_jars,
    npm_program,
)

__all__ = [
    "ProgramError",
    "ToolMissingError",
    "cpp_build",
    "go_build",
    "go_program",
    "made_once",
    "maven_jars",
    "npm_program",
]
