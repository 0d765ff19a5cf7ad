"""The pytest plugin, run by pytest inside pytest."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest

pytest_plugins = ["pytester"]


@pytest.fixture
def arguments() -> list[str]:
    """Loads the plugin by hand where the product is not installed but only on the path."""
    installed = any(point.value == "jmsish.pytest_plugin" for point in entry_points(group="pytest11"))
    return ["-q", "-W", "error"] if installed else ["-q", "-W", "error", "-p", "jmsish.pytest_plugin"]


def test_the_fixtures_fit_together(pytester: pytest.Pytester, arguments: list[str]) -> None:
    pytester.makepyfile(
        """
        import jmsish

        def test_all(jms_broker, jms_url, jms_connection, jms_session, jms_transacted_session):
            assert jms_url == jms_broker.url
            assert jms_connection.is_started
            assert jms_session.acknowledge_mode is jmsish.AcknowledgeMode.AUTO
            assert jms_transacted_session.transacted
            queue = jms_session.create_queue("q")
            jms_session.create_producer(queue).send("hello")
            assert jms_transacted_session.create_consumer(queue).receive(timeout=30).body == "hello"
        """
    )
    pytester.runpytest_inprocess(*arguments).assert_outcomes(passed=1)


def test_every_test_has_a_broker_of_its_own(pytester: pytest.Pytester, arguments: list[str]) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("turn", range(3))
        def test_nothing_is_left(turn, jms_broker, jms_session):
            queue = jms_session.create_queue("q")
            jms_session.create_producer(queue).send("left behind")
            assert jms_broker.queue("q").depth == 1
        """
    )
    pytester.runpytest_inprocess(*arguments).assert_outcomes(passed=3)


def test_what_is_not_committed_is_rolled_back_and_closing_twice_is_silent(
    pytester: pytest.Pytester, arguments: list[str]
) -> None:
    pytester.makepyfile(
        """
        def test_closes(jms_broker, jms_transacted_session, jms_connection):
            queue = jms_transacted_session.create_queue("q")
            jms_transacted_session.create_producer(queue).send("never seen")
            jms_connection.close()
            assert jms_broker.queue("q").depth == 0
        """
    )
    pytester.runpytest_inprocess(*arguments).assert_outcomes(passed=1)


def test_marks_give_settings(pytester: pytest.Pytester, arguments: list[str]) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.jms_broker(config={"queues": {"orders": {"max_delivery_attempts": 1, "dead_letter": "dead"}}})
        @pytest.mark.jms_connection(client_id="tester", prefetch=1)
        def test_limit(jms_broker, jms_connection, jms_transacted_session):
            assert jms_connection.client_id == "tester"
            queue = jms_transacted_session.create_queue("orders")
            jms_transacted_session.create_producer(queue).send("bad")
            jms_transacted_session.commit()
            assert jms_transacted_session.create_consumer(queue).receive(timeout=30) is not None
            jms_transacted_session.rollback()
            assert jms_broker.queue("dead").depth == 1
        """
    )
    result = pytester.runpytest_inprocess("--strict-markers", *arguments)
    result.assert_outcomes(passed=1)


def test_the_asyncio_face_uses_the_url(pytester: pytest.Pytester, arguments: list[str]) -> None:
    pytester.makepyfile(
        """
        import asyncio
        import jmsish.aio

        def test_aio(jms_url):
            async def work():
                async with jmsish.aio.connect(jms_url) as connection:
                    session = await connection.create_session()
                    queue = session.create_queue("q")
                    await (await session.create_producer(queue)).send("hello")
                    return (await (await session.create_consumer(queue)).receive(timeout=30)).body

            assert asyncio.run(work()) == "hello"
        """
    )
    pytester.runpytest_inprocess(*arguments).assert_outcomes(passed=1)


def test_pytest_fixtures_explains_them(pytester: pytest.Pytester, arguments: list[str]) -> None:
    output = pytester.runpytest_inprocess("--fixtures", *arguments).stdout.str()
    for name in ("jms_broker", "jms_url", "jms_connection", "jms_session", "jms_transacted_session"):
        assert name in output
    assert "A broker in memory for this test alone" in output
