#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A client of ibmgrd that knows nothing but docs/reference/openapi.json.

It checks each operation that it uses against the document, and needs the standard library only.

    ibmgr.py DOCUMENT SOCKET operationId [name=value | @name=value | body={...}]...

`name=value` fills a parameter of the path or the query, `@name=value` a header, `body=` is the JSON body.
The answer's JSON goes to standard output; a problem document to standard error, with exit status 1.
"""

import http.client
import json
import socket
import sys
import urllib.parse


class Connection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=30)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def operation(document, name):
    """Returns path, method and description of an operation."""
    for path, item in document["paths"].items():
        for method, described in item.items():
            if described["operationId"] == name:
                return path, method.upper(), described
    raise SystemExit(f"the document has no operation {name}")


def resolve(document, node):
    """Follows a reference inside the document."""
    while "$ref" in node:
        found = document
        for part in node["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        node = found
    return node


def request(document, name, words):
    """Builds method, path, headers and body from the words of the command line."""
    path, method, described = operation(document, name)
    known = [resolve(document, one) for one in described.get("parameters", [])]
    places = {(one["name"].lower(), one["in"]) for one in known}
    query, headers, body = [], {}, None
    for word in words:
        key, value = word.split("=", 1)
        if key == "body":
            body = value
            headers["Content-Type"] = "application/json"
        elif key.startswith("@"):
            if (key[1:].lower(), "header") not in places:
                raise SystemExit(f"{name} has no header {key[1:]}")
            headers[key[1:]] = value
        elif (key, "path") in places:
            path = path.replace("{" + key + "}", urllib.parse.quote(value, safe=""))
        elif (key, "query") in places:
            query.append((key, value))
        else:
            raise SystemExit(f"{name} has no parameter {key}")
    if query:
        path += "?" + urllib.parse.urlencode(query)
    return method, path, headers, body, described


def main():
    file, where, name, *words = sys.argv[1:]
    with open(file, encoding="utf-8") as opened:
        document = json.load(opened)
    method, path, headers, body, described = request(document, name, words)
    connection = Connection(where)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    status = str(answer.status)
    if status not in described["responses"] and "default" not in described["responses"]:
        raise SystemExit(f"the document does not say that {name} answers {status}")
    form = (answer.getheader("Content-Type") or "").split(";")[0]
    if form == "text/event-stream":
        # One event is enough to show.
        for line in answer:
            if line.startswith(b"data:"):
                print(line.removeprefix(b"data:").decode().strip())
                return 0
    text = answer.read().decode()
    etag = answer.getheader("ETag")
    if etag:
        print(etag, file=sys.stderr)
    print(text, file=sys.stderr if answer.status >= 400 else sys.stdout)
    return int(answer.status >= 400)


sys.exit(main())
