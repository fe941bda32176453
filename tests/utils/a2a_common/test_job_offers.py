"""When a process fetches a new job."""

from __future__ import annotations

from ai_platform_engineering.utils.a2a_common.server.job_offers import JobOffers


def test_a_process_fetches_its_own_job_before_the_others_do() -> None:
    ours, others = JobOffers(lambda: 3), JobOffers(lambda: 0)
    delay = others.notified(1)
    assert delay is not None
    assert ours.queued(1) < delay


def test_a_process_with_much_more_to_do_leaves_its_job_to_another_one() -> None:
    busy, idle = JobOffers(lambda: 20), JobOffers(lambda: 5)
    delay = idle.notified(1)
    assert delay is not None
    assert delay < busy.queued(1)


def test_the_notification_of_an_own_job_needs_no_fetch_but_a_later_one_does() -> None:
    offers = JobOffers(lambda: 0)
    offers.queued(1)
    assert offers.notified(1) is None
    assert offers.notified(1) is not None  # its end has freed the lock


def test_a_notification_may_arrive_before_its_job_is_known_to_be_queued() -> None:
    offers = JobOffers(lambda: 0)
    assert offers.notified(1) is not None
    offers.queued(1)
    assert offers.notified(1) is not None
