"""A page in headless Chromium, by the DevTools protocol over a pipe; without it, tests skip."""

import contextlib
import json
import os
import shutil
import subprocess

import pytest

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
FLAGS += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
FLAGS += ["--remote-debugging-pipe", "--hide-scrollbars", "--window-size=1280,900"]


class Page:
    """A tab: commands by name, and the events that came meanwhile."""

    def __init__(self, commands, messages):
        self.commands, self.messages, self.events, self.number = commands, messages, [], 0
        self.session, self.text = None, bytearray()

    def __call__(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        message |= {"sessionId": self.session} if self.session else {}
        self.commands.write(json.dumps(message).encode() + b"\0")
        self.commands.flush()
        while (answer := self._read()).get("id") != self.number:
            self.events.append(answer)
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    def _read(self):
        while (end := self.text.find(0)) < 0:
            part = self.messages.read1()
            assert part, "Chromium ended"
            self.text += part
        message = json.loads(self.text[:end])
        del self.text[: end + 1]
        return message

    def open(self, path, scripts=True, place="", script=""):
        """Load a file or an address, and wait until its scripts have run, unless they are off.

        `script` runs before them.
        """
        self.session = None
        self.events.clear()
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self.session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self(f"{domain}.enable")
        self("Emulation.setScriptExecutionDisabled", value=not scripts)
        self("Page.addScriptToEvaluateOnNewDocument", source=script)
        address = path if isinstance(path, str) else path.as_uri()
        self("Page.navigate", url=address + place)
        while not any(e["method"] == "Page.loadEventFired" for e in self.events):
            self.events.append(self._read())
        return self

    def js(self, expression):
        """Return the value of an expression; one that throws fails the test."""
        options = {"returnByValue": True, "awaitPromise": True}
        answer = self("Runtime.evaluate", expression=expression, **options)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def key(self, *names):
        for name in names:
            code = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}.get(name, 0)
            code = {"Tab": 9, "Enter": 13, "Home": 36, "End": 35}.get(name, code)
            key = {"key": name, "code": name, "windowsVirtualKeyCode": code}
            key |= {"text": "\r"} if name == "Enter" else {}
            self("Input.dispatchKeyEvent", type="keyDown", **key)
            self("Input.dispatchKeyEvent", type="keyUp", **key | {"text": ""})

    def point(self, selector):
        """Move the pointer to the middle of an element."""
        box = self.js(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center', inline: 'center'});"
            "const b = e.getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        self("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])

    def wait(self, expression):
        """Wait until an expression is true, frame by frame; for at most 10 seconds."""
        assert self.js(
            "new Promise((done) => { const end = performance.now() + 10000;"
            f"const look = () => ({expression}) ? done(true) : performance.now() > end"
            "? done(false) : setTimeout(look, 20); look(); })"
        ), expression

    def accessible(self):
        """Return (role, name) of each node of the accessibility tree."""
        self("Accessibility.enable")
        nodes = self("Accessibility.getFullAXTree")["nodes"]
        return [
            (n.get("role", {}).get("value"), n.get("name", {}).get("value", "")) for n in nodes
        ]

    def addresses(self):
        """Return the addresses of all requests so far."""
        sent = [e for e in self.events if e["method"] == "Network.requestWillBeSent"]
        return [e["params"]["request"]["url"] for e in sent]

    def problems(self):
        """Return the errors of scripts and of the content policy so far."""
        thrown = [e["params"] for e in self.events if e["method"] == "Runtime.exceptionThrown"]
        said = [e["params"]["entry"] for e in self.events if e["method"] == "Log.entryAdded"]
        return thrown + [entry for entry in said if entry["level"] == "error"]


@contextlib.contextmanager
def browser(folder):
    """Run Chromium with a new profile in `folder`; yield a `Page`."""
    if PROGRAM is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    (commands_end, commands), (messages, messages_end) = os.pipe(), os.pipe()
    command = [PROGRAM, *FLAGS, f"--user-data-dir={folder}", "about:blank"]
    # Chromium reads commands from its file 3 and writes to 4.
    script = f'exec "$@" 3<&{commands_end} 4>&{messages_end}'
    process = subprocess.Popen(
        ["bash", "-c", script, "bash", *command],
        pass_fds=(commands_end, messages_end),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(commands_end)
    os.close(messages_end)
    with os.fdopen(commands, "wb") as writer, os.fdopen(messages, "rb") as reader:
        try:
            yield Page(writer, reader)
        finally:
            process.terminate()
            process.wait()
