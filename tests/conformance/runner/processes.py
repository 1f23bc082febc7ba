"""Processes that are gone when the block that started them is left."""

import contextlib
import os
import signal
import subprocess

# How long a process may take to end after it was asked to, in seconds.
PATIENCE = 10


@contextlib.contextmanager
def running(command, log, environment=()):
    """Starts a process and yields its standard output; its standard error is added to `log`."""
    with open(log, "ab") as errors:
        process = subprocess.Popen(
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
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def run_to_the_end(command, log, limit, environment=()):
    """Runs a process with all that it starts, and returns its exit code.

    What it has left behind then, or after `limit` seconds, is killed.
    """
    with open(log, "ab") as output:
        process = subprocess.Popen(
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


def end_on_signals():
    """Lets a signal to stop leave all blocks, as an exception does."""

    def leave(number, _frame):
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, leave)
