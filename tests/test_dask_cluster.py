"""`--cluster` hands ranks to a real Dask scheduler with separate worker processes, and a dying worker loses nothing."""

import os
import signal

import pytest

distributed = pytest.importorskip("distributed")

from advisor.model import RUN  # noqa: E402
from advisor.pipeline import Options, measure  # noqa: E402
from benchmarks.simulator import Fault, Scenario, simulate, write_profile  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
SCENARIO = Scenario(data=6, layers=2, steps=3, kernel_us=300.0, faults=(Fault("slow_compute", 4, 0.4),), seed=11)


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("profile")
    write_profile(simulate(SCENARIO), folder)
    return folder


@pytest.fixture
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as started:
        yield started


def values(facts):
    return {(f.name, str(f.subject)): f.value for f in facts}


def test_cluster_and_local_facts_are_the_same(profile, cluster):
    """Ranks reduced by worker processes give the same facts as ranks reduced here."""
    here = measure([profile], None, Options(jobs=1))
    there = measure([profile], None, Options(cluster=cluster.scheduler_address))
    assert values(there.facts) == values(here.facts)
    assert there.facts.value("run.rank_count", RUN) == 6
    assert {p.problem for p in there.problems} == {p.problem for p in here.problems}


def test_a_worker_that_dies_loses_no_result(profile, cluster):
    """With one of two workers killed in the middle, every rank is still in the result."""
    victims = [worker.process.pid for worker in cluster.workers.values()][:1]

    def kill(advance) -> None:
        while advance.ranks_done == 1 and victims:
            os.kill(victims.pop(), signal.SIGKILL)

    options = Options(cluster=cluster.scheduler_address, progress=kill)
    measured = measure([profile], None, options)
    assert not victims
    assert measured.facts.value("run.rank_count", RUN) == 6
    assert len(measured.facts.of("step.time_us")) == 7


def test_nobody_at_the_address(profile):
    """An address without a scheduler is a usage error that says what to do, not a traceback."""
    from advisor.basics.errors import UsageError

    with pytest.raises(UsageError, match="no scheduler answers"):
        measure([profile], None, Options(cluster="tcp://127.0.0.1:9"))
