"""One POST over HTTP, and the messages that answer it."""

import http.client
import json
import urllib.parse

# How long a server may be silent, in seconds.
PATIENCE = 10


class Failed(Exception):
    """A request that got an error instead of a result."""


class Endpoint:
    """The address of a server, and the headers that every request has."""

    def __init__(self, url):
        self._url = urllib.parse.urlsplit(url)
        self.headers = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }

    def post(self, message, headers=()):
        """Sends a message and yields those that come back, none for a notification.

        What is yielded first is the session id of the answer, or nothing where it has none.
        """
        connection = http.client.HTTPConnection(self._url.netloc, timeout=PATIENCE)
        try:
            body = json.dumps(message).encode()
            connection.request("POST", self._url.path, body, {**self.headers, **dict(headers)})
            response = connection.getresponse()
            yield response.headers.get("Mcp-Session-Id")
            if response.headers.get_content_type() == "text/event-stream":
                yield from _events(response)
            elif content := response.read():
                yield json.loads(content)
        finally:
            connection.close()

    def delete(self):
        """Ends the session."""
        connection = http.client.HTTPConnection(self._url.netloc, timeout=PATIENCE)
        try:
            connection.request("DELETE", self._url.path, headers=self.headers)
            connection.getresponse().read()
        finally:
            connection.close()


def result_of(answer):
    """The result in an answer."""
    if "result" not in answer:
        raise Failed(json.dumps(answer.get("error")))
    return answer["result"]


def _events(lines):
    """The messages of an event stream."""
    data = []
    for line in lines:
        field, _, value = line.decode().rstrip("\r\n").partition(":")
        if field == "data":
            data.append(value.removeprefix(" "))
        elif not field and not value and data:
            # An empty one only says where to resume.
            if text := "\n".join(data):
                yield json.loads(text)
            data = []
