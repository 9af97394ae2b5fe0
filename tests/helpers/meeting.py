"""A step as the replay sees it, from the chains of ranks that all meet in every collective."""

from advisor.facts.cluster.meetings import Model
from advisor.facts.cluster.replay import play
from advisor.facts.device.chain import Chain


def meeting(chains: dict[int, Chain]) -> Model:
    """The step in which ranks with these chains, all of one order, meet in each of their collectives."""
    joint = {rank: [-1] * len(c.name) for rank, c in chains.items()}
    found = Model(chains, dict.fromkeys(chains, 0.0), joint)
    for place, name in enumerate(chains[0].name):
        if name:
            for rank in chains:
                joint[rank][place] = len(found.members)
            found.members.append(dict.fromkeys(chains, place))
            found.pure.append(1.0)
            found.group.append("1")
            found.absent.append(None)
    found.baseline_us = play(found, {}) or 0.0
    return found
