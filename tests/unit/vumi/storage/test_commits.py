"""Group commit: jobs of many threads share a commit, and each fails separately."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from vumi.storage.commits import LOCKED_MILLISECONDS, GroupCommit, Job, Ticket, nested

PATIENCE = 10.0
"""Seconds after which a thread counts as hung."""
SMALL, BIG = b"s", b"b" * 1_000_000


class Odd(Exception):
    """The error that jobs of these tests raise."""


class Gathering(GroupCommit):
    """A group commit that signals each job that has queued up."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self._queued = threading.Semaphore(0)

    def _leads(self, ticket: Ticket[Any]) -> bool:
        leads = super()._leads(ticket)
        self._queued.release()
        return leads

    def wait_for_one(self) -> None:
        assert self._queued.acquire(timeout=PATIENCE)


class Caller(threading.Thread):
    """A thread that runs one job, and its result or error."""

    def __init__(self, commits: GroupCommit, job: Job[Any]) -> None:
        super().__init__()
        self._commits = commits
        self._job = job
        self.result: object = None
        self.error: BaseException | None = None
        self.returned = False

    def run(self) -> None:
        try:
            self.result = self._commits.run(self._job)
        except BaseException as error:  # noqa: BLE001  a test looks at it
            self.error = error
        self.returned = True


class Bench:
    """A file with one table, its group commit, and the statements of its connection."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.writer = sqlite3.connect(
            path, timeout=0.0, isolation_level=None, check_same_thread=False
        )
        self.writer.execute("PRAGMA journal_mode = WAL")
        self.writer.execute("CREATE TABLE rows (name TEXT PRIMARY KEY, content BLOB)")
        self.statements: list[str] = []
        self.writer.set_trace_callback(self.statements.append)
        self.commits = Gathering(self.writer)

    def committed(self) -> list[str]:
        """Return the names that another connection sees."""
        reader = sqlite3.connect(self.path)
        names = [name for (name,) in reader.execute("SELECT name FROM rows ORDER BY name")]
        reader.close()
        return names

    def number_of_commits(self) -> int:
        return self.statements.count("COMMIT")

    def run_as_one_group(self, *jobs: Job[Any]) -> list[Caller]:
        """Run jobs on their own threads, which all wait in this order while another job runs."""
        entered, gathered = threading.Event(), threading.Event()

        def hold(_: sqlite3.Connection) -> None:
            entered.set()
            assert gathered.wait(PATIENCE)

        callers = [Caller(self.commits, job) for job in (hold, *jobs)]
        for caller in callers:
            caller.start()
            self.commits.wait_for_one()
        assert entered.wait(PATIENCE)
        gathered.set()
        for caller in callers:
            caller.join(PATIENCE)
            assert caller.returned
        assert callers[0].error is None
        return callers[1:]

    def fill_disk(self) -> None:
        """Limit the file to its present size."""
        [pages] = self.writer.execute("PRAGMA page_count").fetchone()
        self.writer.execute(f"PRAGMA max_page_count = {pages}").fetchall()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path / "rows.sqlite3")
    yield bench
    bench.writer.close()


def insert(name: str, content: bytes = SMALL) -> Job[str]:
    def job(connection: sqlite3.Connection) -> str:
        connection.execute("INSERT INTO rows (name, content) VALUES (?, ?)", (name, content))
        return name

    return job


def insert_then_raise(name: str) -> Job[str]:
    def job(connection: sqlite3.Connection) -> str:
        insert(name)(connection)
        raise Odd(name)

    return job


def insert_twice(connection: sqlite3.Connection) -> None:
    """Insert two equal rows with one statement, which SQLite undoes."""
    connection.execute("INSERT INTO rows (name) VALUES ('a'), ('a')")


def raise_at_once(_: sqlite3.Connection) -> None:
    raise Odd("nothing changed")


def counted(job: Job[Any], calls: list[int]) -> Job[Any]:
    """Return a job that notes the thread of each call of the given one."""

    def noting(connection: sqlite3.Connection) -> object:
        calls.append(threading.get_ident())
        return job(connection)

    return noting


def test_jobs_that_wait_together_share_one_commit(bench: Bench) -> None:
    names = [f"n{place:02}" for place in range(20)]

    callers = bench.run_as_one_group(*(insert(name) for name in names))

    assert [caller.result for caller in callers] == names
    assert bench.committed() == names
    assert bench.number_of_commits() == 2  # the commit that they waited for, and one for all 20


def test_free_running_threads_each_get_their_own_result_and_lose_nothing(bench: Bench) -> None:
    results: dict[int, list[str]] = {}

    def work(worker: int) -> None:
        results[worker] = [bench.commits.run(insert(f"{worker}-{turn:02}")) for turn in range(25)]

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)

    expected = {worker: [f"{worker}-{turn:02}" for turn in range(25)] for worker in range(8)}
    assert results == expected
    assert bench.committed() == sorted(name for names in expected.values() for name in names)
    assert bench.number_of_commits() <= 8 * 25


def test_a_job_that_raises_after_a_change_undoes_only_itself(bench: Bench) -> None:
    first, odd, last = bench.run_as_one_group(insert("a"), insert_then_raise("b"), insert("c"))

    assert isinstance(odd.error, Odd)
    assert (first.result, last.result) == ("a", "c")
    assert bench.committed() == ["a", "c"]


def test_a_sqlite_error_in_one_job_leaves_the_others_committed(bench: Bench) -> None:
    def broken(connection: sqlite3.Connection) -> None:
        insert("b")(connection)
        connection.execute("INSERT INTO no_such_table VALUES (1)")

    first, odd, last = bench.run_as_one_group(insert("a"), broken, insert("c"))

    assert isinstance(odd.error, sqlite3.OperationalError)
    assert "no_such_table" in str(odd.error)
    assert (first.result, last.result) == ("a", "c")
    assert bench.committed() == ["a", "c"]


def test_of_two_jobs_that_exclude_each_other_the_first_is_committed(bench: Bench) -> None:
    first, second = bench.run_as_one_group(insert("same"), insert("same"))

    assert first.result == "same"
    assert isinstance(second.error, sqlite3.IntegrityError)
    assert bench.committed() == ["same"]


def test_an_error_that_shows_only_at_the_commit_leaves_the_others_committed(bench: Bench) -> None:
    bench.writer.execute("PRAGMA foreign_keys = ON")
    bench.writer.execute(
        "CREATE TABLE children (parent TEXT REFERENCES rows DEFERRABLE INITIALLY DEFERRED)"
    )

    def orphan(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO children VALUES ('nobody')")

    first, odd, last = bench.run_as_one_group(insert("a"), orphan, insert("c"))

    assert isinstance(odd.error, sqlite3.IntegrityError)
    assert (first.result, last.result) == ("a", "c")
    assert bench.committed() == ["a", "c"]


def test_an_error_before_any_change_disturbs_no_other_job(bench: Bench) -> None:
    calls: list[int] = []
    before, after = counted(insert("a"), calls), counted(insert("c"), calls)

    first, odd, last = bench.run_as_one_group(before, raise_at_once, after)

    assert isinstance(odd.error, Odd)
    assert (first.result, last.result) == ("a", "c")
    assert bench.committed() == ["a", "c"]
    assert len(calls) == 2  # neither job ran again
    assert bench.number_of_commits() == 2
    assert "ROLLBACK" not in bench.statements


def test_a_job_that_runs_twice_is_stored_once(bench: Bench) -> None:
    calls: list[int] = []

    bench.run_as_one_group(counted(insert("a"), calls), insert_then_raise("b"))

    assert len(calls) == 2  # in the group that was undone, then alone
    assert bench.committed() == ["a"]


def test_a_job_that_fails_and_then_succeeds_has_its_result(bench: Bench) -> None:
    """It runs again alone, and only that run counts."""
    errors: list[Odd] = [Odd("the first time")]

    def flaky(connection: sqlite3.Connection) -> str:
        if errors:
            raise errors.pop()
        return insert("flaky")(connection)

    again, odd = bench.run_as_one_group(flaky, insert_then_raise("b"))

    assert isinstance(odd.error, Odd)
    assert again.error is None
    assert again.result == "flaky"
    assert bench.committed() == ["flaky"]


def test_no_job_returns_before_its_commit(bench: Bench) -> None:
    callers: list[Caller] = []
    returned_at_commit: list[int] = []
    seen_at_commit: list[list[str]] = []

    def look(statement: str) -> None:
        if statement == "COMMIT":
            returned_at_commit.append(sum(caller.returned for caller in callers))
            seen_at_commit.append(bench.committed())

    entered, gathered = threading.Event(), threading.Event()

    def hold(_: sqlite3.Connection) -> None:
        entered.set()
        assert gathered.wait(PATIENCE)

    holder = Caller(bench.commits, hold)
    holder.start()
    bench.commits.wait_for_one()
    assert entered.wait(PATIENCE)
    callers += [Caller(bench.commits, insert(name)) for name in "abc"]
    for caller in callers:
        caller.start()
        bench.commits.wait_for_one()
    bench.writer.set_trace_callback(look)
    gathered.set()
    for caller in (holder, *callers):
        caller.join(PATIENCE)

    assert returned_at_commit == [0, 0]  # the holder's commit, then that of a, b and c
    assert seen_at_commit == [[], []]
    assert [caller.result for caller in callers] == ["a", "b", "c"]
    assert bench.committed() == ["a", "b", "c"]


def test_the_first_waiting_thread_becomes_the_leader(bench: Bench) -> None:
    calls: list[int] = []
    jobs = [counted(insert(name), calls) for name in "abc"]

    callers = bench.run_as_one_group(*jobs)

    assert calls == [callers[0].ident] * 3


def test_a_job_that_raises_passes_the_lead_on(bench: Bench) -> None:
    [odd] = bench.run_as_one_group(insert_then_raise("a"))
    assert isinstance(odd.error, Odd)

    assert bench.commits.run(insert("b")) == "b"
    assert bench.committed() == ["b"]


@contextmanager
def locked_from(bench: Bench, transaction: int) -> Iterator[None]:
    """Lock the file as another program just before a transaction, from the second one on."""
    other = sqlite3.connect(bench.path, isolation_level=None, check_same_thread=False)
    seen: list[str] = []

    def look(statement: str) -> None:
        seen.append(statement)
        if seen.count("BEGIN IMMEDIATE") == transaction and not other.in_transaction:
            other.execute("BEGIN IMMEDIATE")

    bench.writer.set_trace_callback(look)
    yield
    other.execute("ROLLBACK")
    other.close()


def test_a_locked_file_fails_every_waiting_job_and_none_after_it(bench: Bench) -> None:
    with locked_from(bench, 2):
        callers = bench.run_as_one_group(insert("a"), insert("b"))

        assert [str(caller.error) for caller in callers] == ["database is locked"] * 2
    assert bench.commits.run(insert("c")) == "c"
    assert bench.committed() == ["c"]


def test_a_job_that_must_run_again_while_the_file_is_locked_fails(bench: Bench) -> None:
    """It had a result in the group that was undone, but its second run could not begin."""
    with locked_from(bench, 3):
        callers = bench.run_as_one_group(insert("a"), insert_then_raise("b"))

        assert [str(caller.error) for caller in callers] == ["database is locked"] * 2
    assert bench.committed() == []


def test_after_one_timeout_no_job_waits_as_long_until_the_file_is_free(bench: Bench) -> None:
    def patience() -> int:
        [milliseconds] = bench.writer.execute("PRAGMA busy_timeout").fetchone()
        return int(milliseconds)

    bench.writer.execute("PRAGMA busy_timeout = 300")
    commits = GroupCommit(bench.writer)
    other = sqlite3.connect(bench.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for name in "ab":
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            commits.run(insert(name))
        assert patience() == LOCKED_MILLISECONDS
    other.execute("ROLLBACK")
    other.close()

    assert commits.run(insert("c")) == "c"
    assert patience() == 300


def test_a_nested_job_that_undoes_itself_takes_no_savepoint(bench: Bench) -> None:
    def job(connection: sqlite3.Connection) -> str:
        with pytest.raises(sqlite3.IntegrityError):
            nested(connection, insert_twice, savepoint=False)
        return nested(connection, insert("b"), savepoint=False)

    assert bench.commits.run(job) == "b"
    assert bench.committed() == ["b"]
    assert not any("SAVEPOINT" in statement for statement in bench.statements)


def test_a_nested_job_returns_and_is_committed_with_its_transaction(bench: Bench) -> None:
    def job(connection: sqlite3.Connection) -> list[str]:
        return [nested(connection, insert("a")), nested(connection, insert("b"))]

    assert bench.commits.run(job) == ["a", "b"]
    assert bench.committed() == ["a", "b"]
    assert bench.number_of_commits() == 1


@pytest.mark.parametrize(
    ("failing", "error"),
    [(insert_then_raise("b"), Odd), (insert("a"), sqlite3.IntegrityError)],
    ids=["an error of the job", "an error of SQLite"],
)
def test_a_nested_job_that_fails_undoes_only_itself(
    bench: Bench, failing: Job[str], error: type[Exception]
) -> None:
    def job(connection: sqlite3.Connection) -> None:
        nested(connection, insert("a"))
        with pytest.raises(error):
            nested(connection, failing)
        nested(connection, insert("c"))

    bench.commits.run(job)

    assert bench.committed() == ["a", "c"]


def test_a_nested_job_within_a_nested_job_undoes_only_itself(bench: Bench) -> None:
    def inner(connection: sqlite3.Connection) -> None:
        nested(connection, insert("b"))
        with pytest.raises(Odd):
            nested(connection, insert_then_raise("c"))

    def job(connection: sqlite3.Connection) -> None:
        nested(connection, insert("a"))
        nested(connection, inner)

    bench.commits.run(job)

    assert bench.committed() == ["a", "b"]


def test_a_nested_error_that_is_not_caught_undoes_the_whole_job(bench: Bench) -> None:
    def job(connection: sqlite3.Connection) -> None:
        insert("a")(connection)
        nested(connection, raise_at_once)

    with pytest.raises(Odd):
        bench.commits.run(job)

    assert bench.committed() == []


def swallowing_a_full_disk(then: Callable[[sqlite3.Connection], object]) -> Job[object]:
    """Return a job that continues after a full disk, when SQLite has undone its transaction."""

    def job(connection: sqlite3.Connection) -> object:
        insert("before")(connection)
        with pytest.raises(sqlite3.OperationalError, match="full"):
            nested(connection, insert("too big", BIG))
        assert not connection.in_transaction
        return then(connection)

    return job


def test_a_rolled_back_transaction_is_never_written_on(bench: Bench) -> None:
    bench.fill_disk()
    job = swallowing_a_full_disk(lambda connection: nested(connection, insert("after")))

    with pytest.raises(
        sqlite3.OperationalError, match=r"^the transaction was rolled back under way$"
    ):
        bench.commits.run(job)

    assert bench.committed() == []


def test_a_rolled_back_transaction_is_never_acknowledged(bench: Bench) -> None:
    bench.fill_disk()

    with pytest.raises(sqlite3.OperationalError):
        bench.commits.run(swallowing_a_full_disk(lambda _: "all is well"))

    assert bench.committed() == []


def test_a_full_disk_fails_only_the_job_that_needs_the_room(bench: Bench) -> None:
    bench.fill_disk()

    first, big, last = bench.run_as_one_group(insert("a"), insert("b", BIG), insert("c"))

    assert isinstance(big.error, sqlite3.OperationalError)
    assert "full" in str(big.error)
    assert (first.result, last.result) == ("a", "c")
    assert bench.committed() == ["a", "c"]


def test_no_cursor_leaves_the_leading_thread(bench: Bench) -> None:
    assert bench.commits.run(lambda connection: connection.execute("SELECT 1")) is None
