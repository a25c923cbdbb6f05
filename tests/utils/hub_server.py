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
    most = None  # bytes of the content after which the connection breaks off

    def do_GET(self):
        path = urllib.parse.unquote(urllib.parse.urlparse(self.path).path)
        self.server.asked.append((self.command, path, self.headers.get("Authorization")))
        match = next((m for m in (p.fullmatch(path) for p in PATHS) if m), None)
        files = self.server.models.get(match["name"]) if match else None
        if files is None:
            return self.send(404, error="RepoNotFound")
        if isinstance(files, int):
            return self.send(files, error={401: "RepoNotFound", 403: "GatedRepo"}.get(files))
        commits = self.server.commits
        commit = commits.get(match["revision"], match["revision"])
        if commit not in commits.values():
            return self.send(404, error="RevisionNotFound")
        if match["what"] == "revision":
            siblings = [{"rfilename": name} for name in files]
            found = {"id": match["name"], "sha": commit, "siblings": siblings}
            return self.send(200, json.dumps(found).encode(), commit)
        if match["what"] == "tree":
            entries = [
                {"type": "file", "path": name, "size": len(content), "oid": etag(content)}
                for name, content in files.items()
            ]
            return self.send(200, json.dumps(entries).encode(), commit)
        if match["file"] not in files:
            return self.send(404, b"", commit, "EntryNotFound")
        self.send_file(match["file"], files[match["file"]], commit)

    do_HEAD = do_GET

    def send(self, status, content=b"", commit=None, error=None, **headers):
        """Answer; a header without a value is left out, and so is the content of a HEAD."""
        headers = {"X-Error-Code": error, "X-Repo-Commit": commit, **headers}
        self.send_response(status)
        for name, value in headers.items():
            if value:
                self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content[: self.most])

    def send_file(self, name, content, commit):
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
        start, self.most = int(wanted[1]) if wanted else 0, None
        if self.command == "GET" and self.server.cuts.get(name, 0):
            self.server.cuts[name] -= 1
            self.most, self.close_connection = (len(content) - start) // 2, True
        headers = {"ETag": f'"{etag(content)}"', "Accept_Ranges": "bytes"}
        if start:
            headers["Content_Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        self.send(206 if start else 200, content[start:], commit, **headers)
        self.most = None

    def log_message(self, *_):
        pass


def etag(content):
    """What the Hub names a file's content by."""
    return hashlib.sha1(content).hexdigest()
