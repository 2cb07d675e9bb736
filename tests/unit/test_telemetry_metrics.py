from exports.telemetry import metrics


def test_the_buckets_rise_from_a_tenth_of_a_second_to_two_hours():
    bounds = metrics.DURATION_BUCKETS_S
    assert (bounds[0], bounds[-1]) == (0.1, 7200.0)
    assert list(bounds) == sorted(set(bounds))
