"""A real Chromium, driven by its own driver, that looks at one page."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from testbed.admin import wait_until

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)

_TIMEOUT = 180.0


class Browser:
    """What tests ask of the page. Whatever is waited for may take a slow machine's time."""

    def __init__(self, driver: webdriver.Chrome, base: str) -> None:
        self.driver = driver
        self._base = base

    def go(self, path: str) -> None:
        self.driver.get(self._base + path)

    def size(self, width: int, height: int) -> None:
        """The page's own size, below the 500 px that a window has at least."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def all(self, css: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def one(self, css: str) -> WebElement:
        """Once it is there."""
        found: WebElement = self.until(css, lambda: next(iter(self.all(css)), None))
        return found

    def text(self, css: str) -> str:
        """All texts of what is there now, one line each."""
        found: str = self.script(
            "return [...document.querySelectorAll(arguments[0])]"
            ".map((one) => one.innerText).join('\\n')",
            css,
        )
        return found

    def see(self, css: str, *texts: str) -> str:
        """Until the texts are shown; all that is."""

        def shown() -> str:
            found = self.text(css)
            return found if all(text in found for text in texts) else ""

        found: str = self.until(f"{texts} in {css}", shown)
        return found

    def until(self, what: str, get: Callable[[], Any]) -> Any:
        def found() -> Any:
            try:
                return get()
            except StaleElementReferenceException:
                return None  # the page has drawn it anew

        return wait_until(f"{what}; the page shows {self.text('body')[:2000]}", found, _TIMEOUT)

    def script(self, text: str, *arguments: Any) -> Any:
        return self.driver.execute_script(text, *arguments)

    def press(self, *keys: str) -> None:
        """Keys to whatever has the focus then: the page may draw it anew at any time."""
        ActionChains(self.driver).send_keys(*keys).perform()

    @property
    def focused(self) -> str:
        """How a screen reader names what has the focus."""
        found: str = self.script(
            "const one = document.activeElement;"
            "return one.getAttribute('aria-label') ?? one.id ?? one.textContent"
        )
        return found

    def complaints(self) -> list[str]:
        """What the console has had since the last call: errors, and what the policy refused.

        Except for answers that say no, which Chromium puts there as well.
        """
        entries: Any = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        found = [str(one["message"]) for one in entries]
        return [one for one in found if "the server responded with a status of 4" not in one]


@contextmanager
def open_browser(base: str) -> Iterator[Browser]:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in (*_FLAGS, f"--user-data-dir={profile}", "--window-size=1280,900"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
        try:
            yield Browser(driver, base)
        finally:
            driver.quit()
