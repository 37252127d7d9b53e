"""Arrays as most of this package has them, by what is in them."""

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]
