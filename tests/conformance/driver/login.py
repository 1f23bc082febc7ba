"""Logins: how an operator lets metamcp in, with `metamcp login` and a browser."""

import contextlib
import re
import subprocess
import sys
import urllib.error
import urllib.request

from .exchange import Failed

# The command that every error names that asks for a login.
COMMAND = "metamcp login"
# The longest silence of a page, in seconds.
TIMEOUT = 10


class WithLogins:
    """A client whose operator logs in when metamcp asks for it. The client then repeats its request.

    Only metamcp ends this: it asks for no further login, or refuses it.
    """

    def __init__(self, client, operator):
        self._client = client
        self._operator = operator

    def open(self):
        return self._repeat(self._client.open)

    def request(self, *arguments):
        return self._repeat(self._client.request, *arguments)

    def call(self, *arguments):
        return self._repeat(self._client.call, *arguments)

    def close(self):
        self._client.close()

    def _repeat(self, function, *arguments):
        while True:
            try:
                result = function(*arguments)
            except Failed as failure:
                if COMMAND not in str(failure):
                    raise
            else:
                if not (result.get("isError") and COMMAND in str(result)):
                    return result
            self._operator.log_in()


class Operator:
    """The person in front of the control socket, with a browser."""

    def __init__(self, program, control, server):
        self._command = [program, "login", server, "--socket", str(control)]

    def log_in(self):
        """Runs `metamcp login` and visits the address that it prints."""
        process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        with process:
            for line in process.stdout:
                print(line, end="", file=sys.stderr)
                if found := re.search(r"https?://\S+", line):
                    visit(found[0])
        if process.returncode != 0:
            raise Failed(f"metamcp login ended with {process.returncode}")


def visit(url):
    """Opens a page as a browser does: it follows redirects, and shows a refusal as any other page."""
    browser = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with contextlib.suppress(urllib.error.HTTPError), browser.open(url, timeout=TIMEOUT) as page:
        page.read()
