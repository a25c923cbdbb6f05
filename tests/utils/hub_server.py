"""A server on loopback that answers as the Hugging Face Hub does, for one model or two."""

import hashlib
import http.server
import json
import re
import threading
import urllib.parse

COMMITS = {"main": "a" * 40, "v1": "b" * 40}
PATHS = (
    re.compile(r"/api/models/(?P<name>.+?)/(?P<what>revision|tree)/(?P<revision>[^/]+)"),
    re.compile(r"/(?P<name>.+?)/(?P<what>resolve)/(?P<revision>[^/]+)/(?P<file>.+)"),
)


class HubServer(http.server.ThreadingHTTPServer):
    """Serves `models`: {name: {file: bytes}}, or {name: status} of those that are refused.

    `asked` lists (method, path, token) of every request. `cuts` {file: how many times it breaks
    off in the middle}.
    """

    daemon_threads = True

    def __init__(self, models):
        super().__init__(("127.0.0.1", 0), Handler)
        self.models, self.asked, self.cuts = models, [], {}
        self.commits = dict(COMMITS)
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def files_asked(self):
        """The files whose content was asked for."""
        return [p.rpartition("/")[2] for m, p, _ in self.asked if m == "GET" and "/resolve/" in p]

    def close(self):
        """Ends the server; what it served cannot be reached any more."""
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.respond(body=True)

    def do_HEAD(self):
        self.respond(body=False)

    def respond(self, body):
        path = urllib.parse.unquote(urllib.parse.urlparse(self.path).path)
        self.server.asked.append((self.command, path, self.headers.get("Authorization")))
        match = next((m for m in (p.fullmatch(path) for p in PATHS) if m), None)
        files = self.server.models.get(match["name"]) if match else None
        if files is None:
            return self.refuse(404, "RepoNotFound")
        if isinstance(files, int):
            return self.refuse(files, {401: "RepoNotFound", 403: "GatedRepo"}.get(files))
        commits = self.server.commits
        commit = commits.get(match["revision"], match["revision"])
        if commit not in commits.values():
            return self.refuse(404, "RevisionNotFound")
        if match["what"] == "revision":
            siblings = [{"rfilename": name} for name in files]
            found = {"id": match["name"], "sha": commit, "siblings": siblings}
            return self.give(found, commit, body)
        if match["what"] == "tree":
            entries = [
                {"type": "file", "path": name, "size": len(content), "oid": etag(content)}
                for name, content in files.items()
            ]
            return self.give(entries, commit, body)
        if match["file"] not in files:
            return self.refuse(404, "EntryNotFound", commit)
        self.give_file(match["file"], files[match["file"]], commit, body)

    def refuse(self, status, code, commit=None):
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
        if commit:
            self.send_header("X-Repo-Commit", commit)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def give(self, value, commit, body):
        content = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("X-Repo-Commit", commit)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if body:
            self.wfile.write(content)

    def give_file(self, name, content, commit, body):
        start = 0
        if wanted := re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or ""):
            start = int(wanted[1])
        self.send_response(206 if start else 200)
        self.send_header("ETag", f'"{etag(content)}"')
        self.send_header("X-Repo-Commit", commit)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(content) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        if not body:
            return
        if self.server.cuts.get(name, 0):
            self.server.cuts[name] -= 1
            self.wfile.write(content[start : (start + len(content)) // 2])
            self.close_connection = True
            return
        self.wfile.write(content[start:])

    def log_message(self, *_):
        pass


def etag(content):
    """What the Hub names a file's content by."""
    return hashlib.sha1(content).hexdigest()
