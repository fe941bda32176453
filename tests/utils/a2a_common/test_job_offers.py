"""When a process fetches a new job."""

from __future__ import annotations

import pytest

from ai_platform_engineering.utils.a2a_common.server.job_offers import JobOffers


def test_a_process_fetches_its_own_job_before_the_others_do() -> None:
    ours, others = JobOffers(lambda: 3), JobOffers(lambda: 0)
    delay = others.notified(1)
    assert delay is not None
    assert ours.queued(1) < delay


def test_a_process_that_knows_no_other_one_keeps_its_jobs() -> None:
    offers = JobOffers(lambda: 100)
    assert offers.keeps_own()
    assert offers.queued(1) == 0


@pytest.mark.parametrize(("running", "keeps"), [(9, True), (20, False)])
def test_a_process_with_clearly_more_to_do_leaves_its_job_to_the_one_with_least(running: int, keeps: bool) -> None:
    busy, idle = JobOffers(lambda: running), JobOffers(lambda: 5)
    busy.note_load("idle", 5)
    busy.note_load("busier", 50)
    delay = idle.notified(1)
    assert delay is not None
    assert busy.keeps_own() is keeps
    assert (busy.queued(1) < delay) is keeps


def test_a_process_that_announces_its_load_no_more_does_not_count() -> None:
    now = 0.0
    offers = JobOffers(lambda: 20, clock=lambda: now)
    offers.note_load("gone", 0)
    assert not offers.keeps_own()
    now = 5.0
    assert offers.keeps_own()


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
