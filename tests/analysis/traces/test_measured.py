"""A live run beside the simulated run of its scenario."""

from coband.simulator.analysis.traces.measured import Row, means


def test_means_count_replications_without_a_message_of_a_kind() -> None:
    """Two uploads in one of two replications are one on average; an overhead has no prediction."""
    with_uploads = [Row("messages", "messages: upload (up)", 2, 4), Row("overheads", "lateness", None, 0.5)]
    without = [Row("overheads", "lateness", None, 1.5)]
    expected = [Row("messages", "messages: upload (up)", 1, 2), Row("overheads", "lateness", None, 1.0)]
    assert list(means([with_uploads, without])) == expected
