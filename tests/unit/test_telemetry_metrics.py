import pytest

from exports.telemetry import metrics


def test_the_buckets_rise_from_a_tenth_of_a_second_to_two_hours():
    bounds = metrics.DURATION_BUCKETS_S
    assert (bounds[0], bounds[-1]) == (0.1, 7200.0)
    assert list(bounds) == sorted(set(bounds))


@pytest.mark.parametrize(("seconds", "bound"), [(0, 0.1), (0.1, 0.1), (0.11, 0.25), (1800, 1800.0), (7200, 7200.0)])
def test_a_duration_falls_into_the_first_bucket_that_holds_it(seconds, bound):
    assert metrics.DURATION_BUCKETS_S[metrics.duration_bucket(seconds)] == bound


def test_a_duration_above_all_bounds_falls_behind_the_last():
    assert metrics.duration_bucket(7200.1) == len(metrics.DURATION_BUCKETS_S)
