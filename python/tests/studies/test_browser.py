"""The web app in a real browser: runs web/tests if Node with its packages and a Chromium are installed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from command_line import ELEPHAN

pytestmark = pytest.mark.slow

WEB = Path(__file__).parents[3] / "web"


def _missing() -> str | None:
    if shutil.which("node") is None:
        return "node: expected it to be installed, found nothing"
    for package in ("playwright-core", "axe-core"):
        if not (WEB / "node_modules" / package).is_dir():
            return f"web/node_modules: expected {package}, found none; `npm ci` in web/ installs it"
    if not Path(os.environ.get("CHROMIUM", "/usr/bin/chromium")).exists():
        return "/usr/bin/chromium: expected a browser, found none; CHROMIUM may name one"
    return None


@pytest.mark.skipif(_missing() is not None, reason=str(_missing()))
def test_the_web_app_in_a_browser() -> None:
    ran = subprocess.run(
        ["node", "--test", "--test-reporter=spec", "tests/browser.test.mjs"],
        cwd=WEB,
        env={**os.environ, "ELEPHAN": str(ELEPHAN)},
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
