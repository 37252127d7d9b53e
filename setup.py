"""What pyproject.toml cannot say: a wheel has the catalog shim compiled.

No wheel is made without it: where it cannot be compiled, the build fails. An editable install has
none; there it is compiled on first use.
"""

import shutil
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent


class BuildWithShim(build_py):
    """Python files, then the shim's jar beside its sources."""

    def run(self) -> None:
        if self.editable_mode:
            super().run()
            return
        # Setuptools would also pack what an earlier build left there.
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        sys.path.insert(0, str(ROOT))  # a build begins without it
        from spark_ext.session.jars.shim import compile_shim

        compile_shim(Path(self.build_lib, "spark_ext", "jvm"), ROOT / "spark_ext" / "jvm")


setup(cmdclass={"build_py": BuildWithShim})
