"""An MCP endpoint that starts and initializes slowly, and counts its handshakes."""

import json
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY = "upstream-key"
TOOLS = [{"name": "session", "inputSchema": {"type": "object"}}]

lock = threading.Lock()
sessions: list[str] = []


class Endpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def send(self, status: int, content: bytes = b"", session: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if session:
            self.send_header("Mcp-Session-Id", session)
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self) -> None:
        if self.path == "/handshakes":
            self.send(200, str(len(sessions)).encode())
        else:
            self.send(405)

    def do_DELETE(self) -> None:
        self.send(200)

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["X-API-Key"] != KEY:
            self.send(401)
            return
        method = message.get("method")
        session = self.headers["Mcp-Session-Id"] or ""
        result: dict[str, object] = {}
        if method == "initialize":
            time.sleep(1)
            session = str(uuid.uuid4())
            with lock:
                sessions.append(session)
            result = {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "upstream", "version": "1"},
            }
        elif session not in sessions:
            self.send(404)
            return
        elif method == "tools/list":
            result = {"tools": TOOLS}
        elif method == "tools/call":
            result = {"content": [{"type": "text", "text": session}]}
        if "id" not in message:
            self.send(202)
            return
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        self.send(200, json.dumps(answer).encode(), session)


time.sleep(2)
ThreadingHTTPServer(("127.0.0.1", 12009), Endpoint).serve_forever()
