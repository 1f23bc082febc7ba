"""A client of 2026-07-28: independent requests, which it sends again with answers if the server asks."""

import base64
import itertools

from . import answers
from .exchange import Endpoint, result_of

VERSION = "2026-07-28"
KEY = "io.modelcontextprotocol/"
# The parameter that `Mcp-Name` repeats, by method.
NAMED_BY = {"prompts/get": "name", "resources/read": "uri", "tools/call": "name"}
# The largest number of rounds; no server of the suite needs as many.
N_ROUNDS = 5


class ModernClient:
    """A client without a session."""

    def __init__(self, url):
        self._endpoint = Endpoint(url)
        self._endpoint.headers["MCP-Protocol-Version"] = VERSION
        self._ids = itertools.count()

    def open(self):
        """Returns the capabilities of the server."""
        return self.request("server/discover", {})["capabilities"]

    def request(self, method, params, headers=()):
        """Sends a request, again while the server requires input, and returns its result."""
        more = {}
        for _ in range(N_ROUNDS):
            result = self._send(method, {**params, **more}, headers)
            if result.get("resultType") != "input_required":
                return result
            questions = result.get("inputRequests") or {}
            more = {
                "inputResponses": {
                    name: answers.to_question(question["method"], question.get("params", {}))
                    for name, question in questions.items()
                }
            }
            if "requestState" in result:
                more["requestState"] = result["requestState"]
        raise ConnectionError(f"{method} asks again and again")

    def call(self, tool, arguments):
        """Calls a tool, and repeats arguments in headers as its schema requires."""
        properties = tool["inputSchema"].get("properties", {})
        headers = {
            f"Mcp-Param-{schema['x-mcp-header']}": header_of(arguments[name])
            for name, schema in properties.items()
            if "x-mcp-header" in schema and arguments.get(name) is not None
        }
        params = {"name": tool["name"], "arguments": arguments}
        return self.request("tools/call", params, headers)

    def close(self):
        """Does nothing, because there is no session."""

    def _send(self, method, params, headers):
        request_id = next(self._ids)
        meta = {
            KEY + "protocolVersion": VERSION,
            KEY + "clientCapabilities": answers.CAPABILITIES,
            KEY + "clientInfo": {"name": "driver", "version": "1.0.0"},
        }
        message = {
            "jsonrpc": "2.0",
            "id": request_id,
            "method": method,
            "params": {**params, "_meta": meta},
        }
        named = {"Mcp-Method": method}
        if method in NAMED_BY:
            named["Mcp-Name"] = header_of(params[NAMED_BY[method]])
        for reply in self._endpoint.post(message, {**dict(headers), **named}):
            if "method" not in reply:
                return result_of(reply)
        raise ConnectionError(f"{method} was not answered")


def header_of(value):
    """Returns the value of a header, in Base64 if a header cannot carry the text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    is_plain = text == text.strip() and all(" " <= character <= "~" for character in text)
    if is_plain and not text.startswith("=?base64?"):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="
