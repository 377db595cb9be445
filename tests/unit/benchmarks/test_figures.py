from __future__ import annotations

import pytest

from benchmarks import figures
from benchmarks.figures import Cost, Idle, Membership, Stage, Upgrade, Writing


def _idle(memory_mib: float, quiet_reconciles: float = 0) -> Idle:
    """0.2 s of CPU time in 40 s while idle, and 0.3 s for a reconcile."""
    return Idle(300, 40, 0.2 + quiet_reconciles * 0.3, quiet_reconciles, 0.3, memory_mib, memory_mib + 50, 30)


SEEN = [
    Stage(1, 3.0, _idle(100), (0.4, 0.5, 0.6)),
    Stage(10, 12.0, _idle(120)),
    Stage(50, 50.0, _idle(180, quiet_reconciles=2), (0.6, 0.5, 1.5)),
]


def test_measures_share_their_clusters() -> None:
    assert figures.stages(figures.STAGES) == [1, 10, 50]
    assert figures.stages(["fifty_at_once"]) == [10, 50]
    assert figures.stages(["changed_among_settled"]) == [1, 50]


def test_settled_reconcile_has_ratios_of_stock_to_warm() -> None:
    found = figures.settled_reconcile(stock=Cost(1.5, 1.8, 200), warm=Cost(0.25, 0.3, 160))
    assert found["wall_ratio"] == pytest.approx(6)
    assert found["cpu_ratio"] == pytest.approx(6)
    assert found["peak_ratio"] == pytest.approx(1.25)
    assert {"stock_s", "warm_s", "stock_cpu_s", "warm_cpu_s", "stock_peak_mib", "warm_peak_mib"} < set(found)


def test_fifty_at_once_compares_the_time_per_cluster() -> None:
    found = figures.growth(["fifty_at_once"], SEEN)["fifty_at_once"]
    assert found["per_cluster_s_10"] == pytest.approx(1.2)
    assert found["ratio"] == pytest.approx(1 / 1.2)
    assert found["s_1"] == pytest.approx(3)


def test_idle_cpu_counts_each_reconcile_once() -> None:
    found = figures.growth(["idle"], SEEN)["idle"]
    assert found["cpu_percent_10"] == pytest.approx(0.5 + 1)
    assert found["cpu_percent_50"] == pytest.approx(0.5 + 5)  # reconciles during the idle period are not counted twice
    assert found["memory_mib_10"] == pytest.approx(120)
    assert found["peak_mib_1"] == pytest.approx(150)
    assert found["cpu_ratio"] == pytest.approx(5.5 / 1.5)
    assert found["memory_ratio"] == pytest.approx(1.5)
    assert found["period_s"] == 300


def test_spec_change_has_median_and_worst_ratios() -> None:
    found = figures.growth(["changed_among_settled"], SEEN)["changed_among_settled"]
    assert found["ratio"] == pytest.approx(0.6 / 0.5)
    assert found["worst_ratio"] == pytest.approx(1.5 / 0.6)


@pytest.mark.parametrize("name", list(figures.STAGES))
def test_measure_needs_only_its_own_stages(name: str) -> None:
    own = [stage for stage in SEEN if stage.clusters in figures.stages([name])]
    assert figures.growth([name], own)[name]


def test_membership_has_ratios_of_the_medians_and_the_longest_gaps() -> None:
    seen = Membership(
        pod_by_hand_s=(2.5, 2.0, 1.0),
        pod_s=(2.4, 2.6, 0.1),
        data_s=(5.0, 4.0, 6.0),
        grow_s=(5.0, 20.0, 4.0),
        shrink_s=(1.0, 3.0, 0.5),
        leader_gap_by_hand_s=(1.4, 1.2),
        leader_gap_s=(1.3, 1.9),
        follower_gap_by_hand_s=(0.1, 0.15),
        follower_gap_s=(0.12, 0.1),
    )
    found = figures.membership(seen)
    assert [found[f"{name}_ratio"] for name in ("pod", "data", "grow", "shrink")] == pytest.approx([1.2, 2.5, 2.5, 0.5])
    assert [found[f"grow_s_{number}"] for number in (1, 2, 3)] == [5.0, 20.0, 4.0]
    assert found["leader_gap_s"] == 1.9
    assert found["follower_gap_by_hand_s"] == 0.15


def test_upgrade_has_ratios_of_the_medians_and_the_worst_client_effects() -> None:
    seen = Upgrade(
        pod_by_hand_s=(2.5, 2.0, 1.0),
        follower_by_hand=(Writing(0.1, 1), Writing(0.2, 0)),
        leader_by_hand=(Writing(0.5, 3), Writing(0.3, 4)),
        upgrade_s=(12.0, 14.0, 3.0),
        roll_s=(8.0, 7.0, 1.0),
        upgrade=(Writing(0.4, 2), Writing(0.6, 1)),
    )
    found = figures.upgrade(seen)
    assert found["roll_ratio"] == pytest.approx(3.5)
    assert found["upgrade_ratio"] == pytest.approx(6)
    assert (found["gap_s"], found["failed"]) == (0.6, 2)
    assert (found["follower_by_hand_gap_s"], found["leader_by_hand_gap_s"]) == (0.2, 0.5)
    assert found["by_hand_failed"] == 5


def test_comparison_is_of_the_medians() -> None:
    found = figures.compared(by_hand=(2.0, 1.0, 4.0), operator=(3.0, 9.0, 1.0))
    assert found["ratio"] == pytest.approx(1.5)
    assert found["operator_s_2"] == 9.0
