"""Clients of either era, over standard input and output or over HTTP."""

import http.client
import json
import queue
import subprocess
import threading
import time

from . import processes

LEGACY, MODERN = "2025-06-18", "2026-07-28"
_META = "io.modelcontextprotocol/"
_INFO = {"name": "sweep", "version": "1"}
# The seconds for the start of a server, and for any other answer.
START, ANSWER = 60, 20
# The seconds that a server has to exit after the end of its input.
EXIT_TIMEOUT = 5
# The answer to a request of a server. The client declares no capability, so that none should come.
_REFUSED = {"code": -32601, "message": "not offered"}


def parse(text):
    """Parses JSON, so that 1.0 and 1 differ."""
    return json.loads(text, parse_float=lambda digits: f"\0{digits}")


class Client:
    """A client of one era, over any transport."""

    def __init__(self, era):
        self.era = era
        self._last_id = 0

    def ask(self, method, params=None, limit=ANSWER):
        """Sends a request and returns {"result"}, {"error"} or {"silent": reason}."""
        self._last_id += 1
        params = dict(params or {})
        if self.era == MODERN:
            params["_meta"] = {
                _META + "protocolVersion": MODERN,
                _META + "clientInfo": _INFO,
                _META + "clientCapabilities": {},
            }
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        answer = self.exchange(message, limit)
        return {key: answer[key] for key in ("result", "error", "silent") if key in answer}

    def hello(self, limit=START):
        """Sends the first request of the era."""
        if self.era == MODERN:
            return self.ask("server/discover", limit=limit)
        params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": _INFO}
        answer = self.ask("initialize", params, limit)
        if "result" in answer:
            self.tell({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer


class StdioClient(Client):
    """A client with its own server process."""

    def __init__(self, era, command, directory, environment, marked):
        super().__init__(era)
        self.last_stderr = b""
        self._received = queue.Queue()
        self._marked = marked
        self._process = processes.start(
            command,
            directory,
            {**processes.inherited(), **environment, **marked.environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for function in (self._read, self._read_errors):
            threading.Thread(target=function, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Ends the process as clients do, by the end of its input. Kills the processes that stay."""
        self._marked.remember(self._process.pid)
        try:
            self._process.stdin.close()
        except OSError:
            pass
        try:
            self._process.wait(EXIT_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.terminate()
            try:
                self._process.wait(1)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        processes.forget(self._process)
        self._marked.left_after(0)

    def exchange(self, message, limit):
        self.tell(message)
        end = time.monotonic() + limit
        while (left := end - time.monotonic()) > 0:
            try:
                received = self._received.get(timeout=left)
            except queue.Empty:
                break
            if received is None:
                self._received.put(None)
                return {"silent": "closed"}
            for one in received if isinstance(received, list) else [received]:
                if not isinstance(one, dict):
                    continue
                if "method" in one:
                    if "id" in one:
                        self.tell({"jsonrpc": "2.0", "id": one["id"], "error": _REFUSED})
                elif one.get("id") == message["id"] or (one.get("id") is None and "error" in one):
                    return one
        return {"silent": "no answer in time"}

    def tell(self, message):
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            pass

    def _read(self):
        for line in self._process.stdout:
            try:
                self._received.put(parse(line))
            except ValueError:
                pass  # Some servers also print lines that are not messages.
        self._received.put(None)

    def _read_errors(self):
        for line in self._process.stderr:
            self.last_stderr = (self.last_stderr + line)[-600:]


class HttpClient(Client):
    """A client of metamcp."""

    def __init__(self, era, address, path):
        super().__init__(era)
        self._address = address
        self._path = path
        self._session = None

    def exchange(self, message, limit):
        connection = http.client.HTTPConnection(self._address, timeout=limit)
        try:
            body = json.dumps(message).encode()
            connection.request("POST", self._path, body, self._headers(message))
            response = connection.getresponse()
            self._session = response.getheader("Mcp-Session-Id") or self._session
            if "event-stream" in (response.getheader("Content-Type") or ""):
                return self._answer_in(response, limit)
            body = response.read()
            return parse(body) if body else {}
        except TimeoutError:
            return {"silent": "no answer in time"}
        except (OSError, ValueError, http.client.HTTPException) as error:
            return {"silent": f"{type(error).__name__}: {error}"}
        finally:
            connection.close()

    def tell(self, message):
        self.exchange(message, ANSWER)

    def close(self):
        """Ends the session, so that metamcp need not wait for it."""
        if self._session:
            connection = http.client.HTTPConnection(self._address, timeout=ANSWER)
            try:
                connection.request("DELETE", self._path, headers=self._headers({"method": "DELETE"}))
                connection.getresponse().read()
            except (OSError, http.client.HTTPException):
                pass
            finally:
                connection.close()

    @staticmethod
    def _answer_in(stream, limit):
        """Returns the first response of a stream of events."""
        end = time.monotonic() + limit
        data = []
        for line in stream:
            line = line.decode().rstrip("\r\n")
            if line.startswith("data:"):
                data.append(line[5:].lstrip())
            elif not line and data:
                text, data = "\n".join(data).strip(), []
                if text and "method" not in (one := parse(text)):
                    return one
            if time.monotonic() > end:
                return {"silent": "no answer in time"}
        return {"silent": "closed"}

    def _headers(self, message):
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        method, params = message["method"], message.get("params", {})
        if self.era == MODERN:
            headers |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
            if method in ("tools/call", "prompts/get", "resources/read"):
                headers["Mcp-Name"] = params.get("name", params.get("uri"))
        elif method != "initialize":
            headers["MCP-Protocol-Version"] = LEGACY
            if self._session:
                headers["Mcp-Session-Id"] = self._session
        return headers
