"""Which attention the hops of a ring could run beside.

Ranks that hold parts of one sequence pass keys and values on to each other (context parallelism): the next block could
be under way while attention on this one computes.
"""

from __future__ import annotations

import numpy as np

from advisor.basics.arrays import Floats, Ints, Mask
from advisor.basics.intervals import covered_in, union
from advisor.facts.collectives.exchanges import POINT_TO_POINT, kind_of
from advisor.facts.operators.kinds import is_attention, is_matrix_product
from advisor.sources.streams.kernels import Kernels


class Hops:
    """What a rank's kernels say of the ring, worked out once for all steps."""

    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels
        self._attends = np.array([is_attention(s.type) for s in kernels.signatures], bool)
        self._multiplies = np.array([is_matrix_product(s.type) for s in kernels.signatures], bool) & ~self._attends
        self._passes: Mask = (
            kernels.named(lambda name: kind_of(name) in POINT_TO_POINT)
            if self._attends.any()
            else np.zeros(len(kernels), bool)
        )

    def beside(self, work: Ints, talks: Ints, exposed: Floats) -> dict[str, float]:
        """Hop -> microseconds of attention that nothing is passed on beside yet and this one could be, of one step.

        Between two products of matrices with weights lies the attention of one layer, block by block. The last block's
        attention is all that nothing can be passed on beside: the hops before it share the others' in their order.
        `work` and `talks` are the places of the step's computing kernels and of its collectives, `exposed` what is
        exposed of each of the latter, microseconds.
        """
        kernels = self._kernels
        passing = self._passes[talks]
        if not passing.any():
            return {}
        hops, alone = talks[passing], exposed[passing]
        order = np.argsort(kernels.start[hops], kind="stable")
        hops, alone = hops[order], alone[order]
        signature = kernels.signature[work]
        attention = work[self._attends[signature]]
        attention = attention[np.argsort(kernels.start[attention], kind="stable")]
        bounds = np.sort(kernels.start[work[self._multiplies[signature]]])
        of_hop, of_block = (np.searchsorted(bounds, kernels.start[rows]) for rows in (hops, attention))
        talked = union(kernels.start[hops], kernels.end[hops])
        begin, end = kernels.start[attention], kernels.end[attention]
        free = (end - begin - covered_in(talked, begin, end)) / 1000
        found: dict[str, float] = {}
        for layer in np.unique(of_hop).tolist():
            blocks, mine = np.flatnonzero(of_block == layer), np.flatnonzero(of_hop == layer)
            sharing = len(blocks) - 1
            for place, hop in enumerate(mine.tolist() if sharing > 0 else ()):
                block = blocks[place * sharing // max(len(mine), sharing)]
                name = kernels.names[kernels.name[hops[hop]]]
                found[name] = found.get(name, 0.0) + float(free[block])
                free[block] = max(free[block] - alone[hop], 0.0)
        return found
