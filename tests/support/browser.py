"""A headless Chromium, driven through its own driver, with a profile that asks nobody on the network."""

from __future__ import annotations

import functools
import shutil
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.foreign_clients import node_package

PATIENCE_S = 60.0
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,1000",
)


@functools.cache
def chromium() -> tuple[str, str] | None:
    """Return the paths of Chromium and its driver, or None if one is missing."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    return None if browser is None or driver is None else (browser, driver)


def axe_source() -> str:
    """Return the source of axe-core, which checks a page for accessibility. Raise Unavailable."""
    return (node_package("axe-core@4") / "axe.min.js").read_text(encoding="utf-8")


class Browser:
    def __init__(self, profile: Path) -> None:
        from selenium import webdriver
        from selenium.webdriver.chrome.options import Options
        from selenium.webdriver.chrome.service import Service

        paths = chromium()
        assert paths is not None
        options = Options()
        options.binary_location = paths[0]
        for one in (*_OPTIONS, f"--user-data-dir={profile}"):
            options.add_argument(one)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self._driver = webdriver.Chrome(options=options, service=Service(paths[1]))
        self._driver.set_script_timeout(PATIENCE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._driver.quit()

    def open(self, url: str) -> None:
        """Open a page, with an empty log of errors."""
        self._driver.get("about:blank")
        self.errors()
        self._driver.get(url)

    def errors(self) -> list[str]:
        """Return what the page has reported to the browser's console since the last call."""
        return [str(entry["message"]) for entry in self._driver.get_log("browser") if entry["level"] == "SEVERE"]

    def title(self) -> str:
        return str(self._driver.title)

    def text(self) -> str:
        return str(self.execute("return document.body.innerText"))

    def execute(self, script: str) -> Any:
        return self._driver.execute_script(script)

    def execute_async(self, script: str) -> Any:
        return self._driver.execute_async_script(script)

    def screenshot(self, path: Path, height: int = 1_000) -> None:
        self._driver.set_window_size(1280, height)
        self._driver.save_screenshot(str(path))

    def wait_for(self, *texts: str) -> None:
        """Wait until the page shows all texts."""
        deadline = time.monotonic() + PATIENCE_S
        while missing := [text for text in texts if text not in self.text()]:
            assert time.monotonic() < deadline, f"{missing} are not shown; the page has\n{self.text()[:3000]}"
            time.sleep(0.1)

    def wait_until(self, script: str) -> None:
        """Wait until a script returns true."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.execute(script):
            assert time.monotonic() < deadline, f"{script} has remained false; the page has\n{self.text()[:3000]}"
            time.sleep(0.05)

    def click(self, name: str, within: str = "body") -> None:
        """Click the button of a name."""
        script = (
            "const [name, within] = arguments;"
            "const all = [...document.querySelectorAll(`${within} button`)];"
            "const found = all.filter((one) => one.textContent === name);"
            "if (!found.length) throw new Error(`no button ${name}`); found.at(-1).click();"
        )
        self._driver.execute_script(script, name, within)

    def type(self, name: str, text: str) -> None:
        """Type into the field with a label."""
        find = (
            "const [name] = arguments; const all = [...document.querySelectorAll('label')];"
            "const labels = all.filter((one) => one.firstChild.textContent.startsWith(name));"
            "const inside = labels.at(-1)?.querySelector('input, textarea');"
            "return inside ?? document.querySelector(`[aria-label='${name}']`);"
        )
        element = self._driver.execute_script(find, name)
        assert element is not None, f"no field {name}"
        element.send_keys(text)

    def press(self, key: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self._driver).send_keys(key).perform()
