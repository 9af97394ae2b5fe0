"""What the numpy arrays of this project hold, by name: times and sizes, counts and indices, choices of rows."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
