"""Processes that end when the block that started them ends."""

import concurrent.futures
import contextlib
import os
import signal
import subprocess
import threading

# The time that a process may take to end after SIGTERM, in seconds.
STOP_TIMEOUT = 10

# The running processes, and whether no more may start.
_lock = threading.Lock()
_alive = set()
_is_over = False


@contextlib.contextmanager
def running(command, log, environment=()):
    """Starts a process and yields its standard output; its standard error is added to `log`."""
    with open(log, "ab") as errors:
        process = _start(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, **dict(environment)},
        )
    with process.stdout as output:
        try:
            yield output
        finally:
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            _forget(process)


def run_to_the_end(command, log, limit, environment=()):
    """Runs a process to its end, and returns its exit code.

    Kills the processes that are left in its group then, or after `limit` seconds.
    """
    with open(log, "ab") as output:
        process = _start(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **dict(environment)},
            start_new_session=True,
        )
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        return -1
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        _forget(process)


@contextlib.contextmanager
def threads(n_threads):
    """Yields threads that start processes. If the block ends early, all processes and threads end."""
    global _is_over
    pool = concurrent.futures.ThreadPoolExecutor(n_threads)
    try:
        yield pool
    except BaseException:
        with _lock:
            _is_over = True
            for process in _alive:
                process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _start(command, **how):
    with _lock:
        if _is_over:
            raise RuntimeError("the run is over")
        process = subprocess.Popen(command, **how)
        _alive.add(process)
    return process


def _forget(process):
    with _lock:
        _alive.discard(process)


def end_on_signals():
    """Makes SIGTERM and SIGINT end all blocks, as an exception does."""

    def leave(number, _frame):
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, leave)
