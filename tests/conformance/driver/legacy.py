"""A client of 2025-11-25: a session, and requests of the server while a request runs."""

import itertools
import time

from . import answers
from .exchange import Endpoint, result_of

VERSION = "2025-11-25"


class LegacyClient:
    """A client with its own session."""

    def __init__(self, url):
        self._endpoint = Endpoint(url)
        self._ids = itertools.count()

    def open(self):
        """Opens the session and returns the capabilities of the server."""
        params = {
            "protocolVersion": VERSION,
            "capabilities": answers.CAPABILITIES,
            "clientInfo": {"name": "driver", "version": "1.0.0"},
        }
        result = self.request("initialize", params)
        self._endpoint.headers["MCP-Protocol-Version"] = result["protocolVersion"]
        self._tell("notifications/initialized")
        return result["capabilities"]

    def request(self, method, params):
        """Sends a request, answers the requests of the server before its answer, and returns its result."""
        request_id = next(self._ids)
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        answer = self._endpoint.post(message)
        if answer.session_id is not None:
            self._endpoint.headers["Mcp-Session-Id"] = answer.session_id
        while True:
            for reply in answer:
                if "method" not in reply:
                    return result_of(reply)
                if "id" in reply:
                    self._answer(reply)
            if answer.last_event_id is None:
                raise ConnectionError(f"{method} was not answered")
            # The server ended the stream; the client resumes it for the rest.
            time.sleep(answer.retry)
            answer = self._endpoint.resume(answer.last_event_id)

    def call(self, tool, arguments):
        return self.request("tools/call", {"name": tool["name"], "arguments": arguments})

    def close(self):
        self._endpoint.delete()

    def _answer(self, question):
        value = answers.to_question(question["method"], question.get("params", {}))
        self._send({"jsonrpc": "2.0", "id": question["id"], "result": value})

    def _tell(self, method):
        self._send({"jsonrpc": "2.0", "method": method})

    def _send(self, message):
        """Sends a message that gets no answer."""
        list(self._endpoint.post(message))
