"""One request over HTTP, and the messages that answer it."""

import http.client
import json
import urllib.parse

# The longest silence of a server, in seconds.
TIMEOUT = 10


class Failed(Exception):
    """A request that got an error instead of a result."""


class Endpoint:
    """The address of a server, and the headers that every request has."""

    def __init__(self, url):
        self._url = urllib.parse.urlsplit(url)
        self.headers = {"Accept": "application/json, text/event-stream"}

    def post(self, message, headers=()):
        """Sends a message and returns its answer."""
        body = json.dumps(message).encode()
        return self._send("POST", {"Content-Type": "application/json", **dict(headers)}, body)

    def resume(self, last_event_id):
        """Asks for the rest of a stream that has ended too early."""
        return self._send("GET", {"Last-Event-ID": last_event_id})

    def delete(self):
        """Ends the session."""
        list(self._send("DELETE", {}))

    def _send(self, method, headers, body=None):
        connection = http.client.HTTPConnection(self._url.netloc, timeout=TIMEOUT)
        connection.request(method, self._url.path, body, {**self.headers, **headers})
        return Answer(connection)


class Answer:
    """The answer to one request. Iterate over its messages; there may be none."""

    def __init__(self, connection):
        self._connection = connection
        self._response = connection.getresponse()
        self.session_id = self._response.headers.get("Mcp-Session-Id")
        # The event at which a stream can be resumed, and the delay before that, in seconds.
        self.last_event_id = None
        self.retry = 0

    def __iter__(self):
        try:
            if self._response.headers.get_content_type() == "text/event-stream":
                yield from self._events()
            elif content := self._response.read():
                yield json.loads(content)
        finally:
            self._connection.close()

    def _events(self):
        data = []
        for line in self._response:
            field, _, value = line.decode().rstrip("\r\n").partition(":")
            value = value.removeprefix(" ")
            match field:
                case "data":
                    data.append(value)
                case "id":
                    self.last_event_id = value
                case "retry":
                    self.retry = int(value) / 1000
                case "" if not value:
                    # The end of an event. An event without data only has an id for resuming.
                    if text := "\n".join(data):
                        yield json.loads(text)
                    data = []


def result_of(message):
    """The result in an answer."""
    if "result" not in message:
        raise Failed(json.dumps(message.get("error")))
    return message["result"]
