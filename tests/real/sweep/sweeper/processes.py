"""Processes that end with the sweep, including all that they have started."""

import concurrent.futures
import contextlib
import os
import signal
import subprocess
import threading
import time
import uuid

# The variable that marks a process, so that the sweep finds it after it has left its parent.
MARK = "METAMCP_SWEEP"
# The variables of the sweep that servers see, directly and through metamcp.
_INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM")


def inherited():
    """Returns the environment for metamcp and for servers that are started directly."""
    return {key: os.environ[key] for key in _INHERITED if key in os.environ}


# The processes that have not ended, and whether the sweep is over.
_lock = threading.Lock()
_alive = set()
_is_over = False


def start(command, directory, environment, **streams):
    """Starts a process in its own group. Call `forget` when it has ended."""
    with _lock:
        if _is_over:
            raise RuntimeError("the sweep is over")
        process = subprocess.Popen(
            list(map(str, command)),
            cwd=directory,
            env=environment,
            start_new_session=True,
            **streams,
        )
        _alive.add(process)
    return process


def forget(process):
    with _lock:
        _alive.discard(process)


@contextlib.contextmanager
def threads(n_threads):
    """Yields threads that start processes. If the block ends early, all processes end."""
    global _is_over
    pool = concurrent.futures.ThreadPoolExecutor(n_threads)
    try:
        yield pool
    except BaseException:
        with _lock:
            _is_over = True
            for process in _alive:
                with contextlib.suppress(OSError):
                    os.killpg(process.pid, signal.SIGTERM)
        raise
    finally:
        pool.shutdown(cancel_futures=True)


class Marked:
    """The processes that servers have started: marked, or descendants of a process of the sweep."""

    def __init__(self):
        self.mark = uuid.uuid4().hex
        self._seen = {}

    @property
    def environment(self):
        return {MARK: self.mark}

    def remember(self, root=None):
        """Records the running processes except `root` itself."""
        if root is not None:
            self._seen |= {pid: since for pid, since in _below(root).items() if pid != root}
        needle = f"{MARK}={self.mark}".encode()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/environ", "rb") as file:
                    environment = file.read()
                if needle in environment.split(b"\0") and int(pid) != root and (since := _since(int(pid))):
                    self._seen[int(pid)] = since

    def left_after(self, limit):
        """Waits until no process is left. Kills those that remain, and returns their names."""
        end = time.monotonic() + limit
        while True:
            self.remember()
            left = [pid for pid, since in self._seen.items() if _since(pid) == since]
            if not left or time.monotonic() > end:
                break
            time.sleep(0.05)
        names = sorted(_name(pid) for pid in left)
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        return names


def run(command, directory, limit, environment=()):
    """Runs a command and its descendants to the end. If it fails, the exception has its output."""
    process = start(
        command,
        directory,
        {**os.environ, **dict(environment)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    name = os.path.basename(command[0])
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{name} did not end within {limit} s") from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        forget(process)
    if process.returncode != 0:
        raise RuntimeError(f"{name} ended with exit code {process.returncode}: {output[-600:].strip()}")


def end_on_signals():
    """Makes SIGTERM and SIGINT end all blocks, as an exception does."""

    def leave(number, _frame):
        # A second signal must not interrupt the cleanup after the first: timeout(1) sends two.
        for one in (signal.SIGTERM, signal.SIGINT):
            signal.signal(one, lambda *_: None)
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, leave)


def _since(pid):
    """Returns the start time of a process, which distinguishes it from a later one with the same id."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None
    return None if fields[0] in "ZX" else fields[19]


def _below(root):
    """Returns a process and all its descendants, each with its start time."""
    found, todo = {}, [root]
    while todo:
        pid = todo.pop()
        if since := _since(pid):
            found[pid] = since
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children") as file:
                    todo += map(int, file.read().split())
    return found


def _name(pid):
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().strip()
    except OSError:
        return "?"
