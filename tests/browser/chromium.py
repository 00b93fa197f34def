"""A real Chromium, driven over its DevTools protocol: no driver, no library but a websocket."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

import websocket

FLAGS = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-port=0",
)

KEYS = {
    "Enter": ("Enter", 13, "\r"),
    "Tab": ("Tab", 9, ""),
    "Escape": ("Escape", 27, ""),
    "ArrowDown": ("ArrowDown", 40, ""),
    "ArrowUp": ("ArrowUp", 38, ""),
    " ": ("Space", 32, " "),
    "a": ("KeyA", 65, "a"),
}
MODIFIERS = {"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}


def find() -> str | None:
    """Chromium's program, if there is one."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Chromium:
    """One page in one headless browser with an empty profile."""

    def __init__(self, width: int = 1400, height: int = 1000, failed: Path | None = None) -> None:
        self.width, self.height = width, height
        self.failed = failed  # where a picture goes of what there was when a test failed

    def __enter__(self) -> Chromium:
        program = find()
        assert program is not None, "no chromium"
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        flags = [*FLAGS, f"--user-data-dir={self.folder.name}"]
        flags.append(f"--window-size={self.width},{self.height}")
        if os.geteuid() == 0:
            flags.append("--no-sandbox")
        self.process = subprocess.Popen(
            [program, *flags, "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            self.connect()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType
    ) -> None:
        if error is not None and self.failed is not None:
            self.screenshot(self.failed)
        self.socket.close()
        self.close()

    def close(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        self.folder.cleanup()

    def connect(self) -> None:
        port_file = Path(self.folder.name) / "DevToolsActivePort"
        port = wait_for(lambda: port_file.exists() and port_file.read_text().split("\n")[0], 30)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=10) as answer:
            pages = [page for page in json.load(answer) if page["type"] == "page"]
        self.socket = websocket.create_connection(
            pages[0]["webSocketDebuggerUrl"], suppress_origin=True, timeout=60
        )
        self.number = 0
        self.send("Page.enable")
        self.send("Runtime.enable")
        self.size(self.width, self.height)

    def size(self, width: int, height: int) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        self.number += 1
        number = self.number
        self.socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.recv())
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return dict(message["result"])

    def open(self, address: str) -> None:
        self.send("Page.navigate", url=address)

    def run(self, script: str) -> Any:
        """Evaluate JavaScript in the page; a promise is waited for."""
        answer = self.send(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"])[:500])
        return answer["result"].get("value")

    def until(self, script: str, seconds: float = 30.0) -> Any:
        """Wait until JavaScript gives something true; return it."""
        try:
            return wait_for(lambda: self.run(script), seconds)
        except TimeoutError:
            raise TimeoutError(f"never true in {seconds} s: {script}") from None

    def click(self, script: str) -> None:
        """Click in the middle of the element that JavaScript gives."""
        box = self.run(
            f"(() => {{ const e = {script}; e.scrollIntoView({{block: 'center'}});"
            "const r = e.getBoundingClientRect();"
            "return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.send(
                "Input.dispatchMouseEvent",
                type=kind,
                x=box[0],
                y=box[1],
                button="left",
                clickCount=1,
            )

    def key(self, key: str, *modifiers: str) -> None:
        code, number, text = KEYS[key]
        held = sum(MODIFIERS[name] for name in modifiers)
        event: dict[str, Any] = {
            "key": key,
            "code": code,
            "windowsVirtualKeyCode": number,
            "modifiers": held,
        }
        typed = {"text": text} if text and held in (0, MODIFIERS["Shift"]) else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", **event, **typed)
        self.send("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, text: str) -> None:
        self.send("Input.insertText", text=text)

    def screenshot(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.run("new Promise(done => setTimeout(done, 1000))")  # what scrolled in is drawn late
        data = self.send("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))


def wait_for(condition: Any, seconds: float) -> Any:
    """Ask every tenth of a second until the answer is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.1)
    raise TimeoutError
