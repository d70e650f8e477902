"""The server of `elephan ui`: pages, a small API, and samples as server-sent events."""

import asyncio
import contextlib
import hmac
import json
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from elephan import _core
from elephan.api.pictures.over_time import QUANTITIES
from elephan.api.registry import cc_groups
from elephan.api.scenario import Scenario, schema
from elephan.base.documents import damage
from elephan.base.text import file_name
from elephan.report.content import Content
from elephan.report.write import page as report_page
from elephan.ui.library import Library
from elephan.ui.limits import Limits, checked, loaded, mistakes
from elephan.ui.live import LiveRun, LiveRuns, TooManyError

# Only from this page: no frames, no scripts or connections elsewhere.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
# For every response.
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
# This is not a redirect: a SameSite cookie is not sent with a request that began elsewhere, in a file or another program.
ENTERED = '<!doctype html><meta http-equiv="refresh" content="0;url=/"><title>Elephan</title>'


def application(results: Path, *, token: str, hosts: frozenset[str], limits: Limits | None = None) -> ASGIApp:
    """The web app over a results folder.

    `token` must be in the URL of a browser's first request, `/?token=...`; from then on it is in a cookie. `hosts` are the
    accepted values of the Host header; if it is empty, all are accepted.
    """
    limits = limits or Limits()
    api = _Api(LiveRuns(limits, results), Library(results), limits)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        api.runs.cancel_all()
        await run_in_threadpool(api.runs.join)

    static = resources.files("elephan.ui") / "static"
    routes = [
        Route("/", api.home),
        Mount("/static", StaticFiles(directory=str(static))),
        Route("/api/about", api.about),
        Route("/api/check", api.check, methods=["POST"]),
        Route("/api/file", api.file, methods=["POST"]),
        Route("/api/open", api.open, methods=["POST"]),
        Route("/api/runs", api.list_runs),
        Route("/api/runs", api.start, methods=["POST"]),
        Route("/api/runs/{id}/messages", api.messages),
        Route("/api/runs/{id}/control", api.control, methods=["POST"]),
        Route("/api/runs/{id}/change", api.change, methods=["POST"]),
        Route("/api/results", api.list_results),
        Route("/api/content", api.content),
        Route("/api/report", api.report),
    ]
    handlers: Any = {
        _core.ScenarioError: lambda _, error: JSONResponse({"mistakes": mistakes(error)}, status_code=422),
        # Errors of the results folder. A run that cannot be saved reports the error itself.
        OSError: lambda _, error: _error(422, f"results: {_os_error(error)}"),
        TooManyError: lambda _, error: _error(429, str(error)),
        HTTPException: _not_there,
    }
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)
    return _Guard(app, hosts, token, limits)


class _Guard:
    """Access control: accepts only this host, origin and token, and requests of limited size that arrive in limited time."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str], token: str, limits: Limits) -> None:
        self._app, self._hosts, self._token, self._limits = app, hosts, token, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        answer = self._refuse(request) or self._enter(request)
        if answer is None and request.method == "POST":
            try:
                async with asyncio.timeout(self._limits.request_s):
                    receive = _again(await _whole(receive), receive)
            except TimeoutError:
                answer = _error(408, f"request: expected all of it within {self._limits.request_s:g} s, found a part")

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                have = {name.lower() for name, _ in message["headers"]}
                more = ((name.lower().encode(), value.encode()) for name, value in HEADERS.items())
                message["headers"] = [*message["headers"], *((name, value) for name, value in more if name not in have)]
            await send(message)

        await (answer or self._app)(scope, receive, send_guarded)

    def _cookie(self, request: Request) -> str:
        # Cookies do not distinguish the ports of a host, so each server needs its own cookie name.
        return f"elephan-{request.scope['server'][1]}"

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode("utf-8", "replace"), self._token.encode())

    def _enter(self, request: Request) -> Response | None:
        """Exchange the token in the URL for a cookie, so that the URL can be shown to others afterwards."""
        if request.url.path != "/" or "token" not in request.query_params:
            return None
        answer = HTMLResponse(ENTERED)
        answer.set_cookie(self._cookie(request), self._token, path="/", httponly=True, samesite="strict")
        return answer

    def _refuse(self, request: Request) -> Response | None:  # noqa: PLR0911 - one for each reason
        headers = request.headers
        host = headers.get("host", "")
        # A page elsewhere can make its own host name resolve to this address (DNS rebinding), but it cannot change the Host
        # header.
        if self._hosts and host not in self._hosts:
            return _error(421, f"host: expected one of {', '.join(sorted(self._hosts))}, found {host[:100]!r}")
        if request.url.path == "/" and (given := request.query_params.get("token")) is not None:
            # Any origin is allowed, because knowing the token is sufficient.
            return None if request.method == "GET" and self._is_token(given) else _no_token()
        origin = headers.get("origin")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            return _error(403, f"origin: expected this page's own, found {origin[:100]!r}")
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return _error(403, "origin: expected this page's own, found another site's")
        if not self._is_token(request.cookies.get(self._cookie(request), "")):
            return _no_token()
        if request.method == "POST":
            if headers.get("content-type", "").split(";")[0] != "application/json":
                return _error(415, "content-type: expected application/json")
            length = _number(headers.get("content-length", ""))
            if length is None:
                return _error(411, "content-length: expected a number of bytes, found none")
            if length > self._limits.request_bytes:
                return _error(413, f"request: expected at most {self._limits.request_bytes} bytes, found {length}")
        return None


async def _whole(receive: Receive) -> Message:
    """The body of a request in one piece, which is no longer than its header declared."""
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return message
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return {"type": "http.request", "body": body, "more_body": False}


def _again(message: Message, receive: Receive) -> Receive:
    """Return a message that was received already, then further ones."""
    waiting = [message]

    async def give() -> Message:
        return waiting.pop() if waiting else await receive()

    return give


def _number(text: str) -> int | None:
    """The number in a header, in ASCII digits only; None if it is not such a number."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def _os_error(error: Exception) -> str:
    """An error of the file system; one that Elephan raised has its own words and no number."""
    assert isinstance(error, OSError)
    return str(error) if error.errno is None else f"expected files that can be read, found {error.strerror}"


def _page(status: int) -> Response:
    """The page, which shows what its address says."""
    return HTMLResponse((resources.files("elephan.ui") / "static" / "index.html").read_text(encoding="utf-8"), status)


def _not_there(request: Request, error: Exception) -> Response:
    """The page for a browser that opens an unknown address, and an error for scripts."""
    assert isinstance(error, HTTPException)
    is_opened = request.method == "GET" and "text/html" in request.headers.get("accept", "")
    if error.status_code == 404 and is_opened and not request.url.path.startswith("/api/"):
        return _page(404)
    return _error(error.status_code, f"request: {error.detail}")


def _error(status: int, text: str) -> Response:
    return JSONResponse({"mistakes": [{"key": "", "problem": text}]}, status_code=status)


def _no_token() -> Response:
    return _error(401, "token: expected that of the address which `elephan ui` printed; open that address")


async def _body(request: Request) -> dict[str, Any]:
    """The JSON object of a request, as the loader of scenarios reads it."""
    try:
        text = (await request.body()).decode()
    except UnicodeDecodeError as error:
        raise _core.ScenarioError("request: expected UTF-8 text, found other bytes") from error
    body = json.loads(_core.parse_document(text, "request", json=True))
    if not isinstance(body, dict):
        raise _core.ScenarioError("request: expected a JSON object, found something else")
    return body


def _part(body: Mapping[str, Any], key: str) -> dict[str, Any]:
    part = body.get(key)
    if not isinstance(part, dict):
        raise _core.ScenarioError(f"{key}: expected a table, found {'nothing' if part is None else 'something else'}")
    return part


def _speed(body: Mapping[str, Any]) -> float | None:
    speed = body.get("speed")
    if speed is None:
        return None
    if isinstance(speed, bool) or not isinstance(speed, int | float) or not 0 <= speed <= 1e6:
        raise _core.ScenarioError(f"speed: expected a number from 0 to 1000000, found {speed!r}")
    return float(speed)


class _Api:
    """The routes of the API."""

    def __init__(self, runs: LiveRuns, library: Library, limits: Limits) -> None:
        self.runs, self.library, self.limits = runs, library, limits
        # Shows a page whether it still talks to the same server.
        self.boot = secrets.token_hex(8)

    async def home(self, _: Request) -> Response:
        return _page(200)

    async def about(self, _: Request) -> Response:
        """All data from which the page makes its controls."""
        return JSONResponse(
            {
                "version": _core.__version__,
                "boot": self.boot,
                "schema": schema(),
                "algorithms": [
                    {"name": entry.name, "title": entry.title, "group": group}
                    for group, entries in cc_groups().items()
                    for entry in entries
                ],
                "charts": [
                    {
                        "of": quantity.of,
                        "id": name,
                        **{
                            key: getattr(quantity.metric, key)
                            for key in ("title", "unit", "meaning", "column", "factor")
                        },
                        "mean": quantity.mean,
                    }
                    for name, quantity in QUANTITIES.items()
                    if quantity.is_live
                ],
            }
        )

    async def check(self, request: Request) -> Response:
        """Check a scenario: no output if it is valid, otherwise a line for each error."""
        document = _part(await _body(request), "document")
        await run_in_threadpool(checked, document, self.limits)
        return JSONResponse({"mistakes": []})

    async def file(self, request: Request) -> Response:
        """A scenario as a file."""
        document = _part(await _body(request), "document")
        await run_in_threadpool(checked, document, self.limits)
        return PlainTextResponse(Scenario(document).toml, media_type="application/toml")

    async def open(self, request: Request) -> Response:
        """A scenario file as a document."""
        text = (await _body(request)).get("text")
        if not isinstance(text, str):
            raise _core.ScenarioError("text: expected a scenario file, found something else")
        is_json = text.lstrip().startswith("{")
        document = json.loads(await run_in_threadpool(_core.parse_document, text, "scenario", is_json))
        return JSONResponse({"document": (await run_in_threadpool(loaded, document, self.limits)).document})

    async def list_runs(self, _: Request) -> Response:
        return JSONResponse([run.describe() for run in self.runs.all()])

    async def start(self, request: Request) -> Response:
        body = await _body(request)
        speed, save = _speed(body) or 0.0, body.get("save", True)
        if not isinstance(save, bool):
            raise _core.ScenarioError("save: expected true or false, found something else")
        run = await run_in_threadpool(self.runs.start, _part(body, "document"), speed, save=save)
        return JSONResponse(run.describe(), status_code=201)

    def _run(self, request: Request) -> LiveRun:
        run = self.runs.get(request.path_params["id"])
        if run is None:
            raise HTTPException(
                404, "expected one of this server's runs, found none; the server may have been restarted"
            )
        return run

    async def control(self, request: Request) -> Response:
        run, body = self._run(request), await _body(request)
        pause, cancel = body.get("pause"), body.get("cancel", False)
        if not isinstance(pause, bool | None) or not isinstance(cancel, bool):
            raise _core.ScenarioError("control: expected pause and cancel to be true or false")
        run.control(pause=pause, speed=_speed(body), cancel=cancel)
        return JSONResponse(run.describe())

    async def change(self, request: Request) -> Response:
        """Add a flow (`flow`), stop one (`stop`: its number in the file), or change a link (`event`), from now on."""
        run, body = self._run(request), await _body(request)
        await run_in_threadpool(run.change, _changes(body))
        return JSONResponse({"document": run.document})

    async def messages(self, request: Request) -> Response:
        """All messages of a run from the first, or from where the page stopped reading; then new ones as they arrive."""
        run, last, start = self._run(request), request.headers.get("last-event-id", ""), 0
        if last:
            number = _number(last)
            if number is None or number >= len(run.messages):
                raise HTTPException(400, f"last-event-id: expected the number of a message, found {last[:40]!r}")
            start = number + 1
        headers = {"X-Accel-Buffering": "no"}
        return StreamingResponse(_follow(run, start), media_type="text/event-stream", headers=headers)

    async def list_results(self, _: Request) -> Response:
        return JSONResponse(await run_in_threadpool(self.library.all))

    async def content(self, request: Request) -> Response:
        """The content of a result, or of several runs side by side."""
        names = request.query_params.getlist("name")
        return Response(await run_in_threadpool(self._show, names, Content.to_json), media_type="application/json")

    def _show(self, names: list[str], how: Callable[[Content], str]) -> str:
        content = self.library.content(names)
        if content is None:
            raise HTTPException(404, "expected names in the results folder, found another or none")
        # Values of a wrong type are detected only when they are written.
        with damage(Path(", ".join(names))):
            return how(content)

    async def report(self, request: Request) -> Response:
        """The report, as a file to download."""
        name = request.query_params.get("name", "")
        page = await run_in_threadpool(self._show, [name], report_page)
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(file_name(name))}.html"}
        return HTMLResponse(page, headers=headers)


def _changes(body: Mapping[str, Any]) -> Callable[[dict[str, Any], str], None]:
    """The effect of a change request on a document."""

    def make(document: dict[str, Any], now: str) -> None:
        if "flow" in body:
            document.setdefault("flow", []).append({**_part(body, "flow"), "start": now})
        elif "event" in body:
            document.setdefault("event", []).append({"at": now, **_part(body, "event")})
        elif type(body.get("stop")) is int and 0 <= body["stop"] < len(document.get("flow", [])):
            document["flow"][body["stop"]]["stop"] = now
        else:
            raise _core.ScenarioError("change: expected flow, event, or stop with the number of a flow, found neither")

    return make


async def _follow(run: LiveRun, start: int) -> AsyncIterator[str]:
    loop, news = asyncio.get_running_loop(), asyncio.Event()

    def awaken() -> None:
        loop.call_soon_threadsafe(news.set)

    stop = run.listen(awaken)
    try:
        number = start
        while True:
            news.clear()
            while number < len(run.messages):
                yield f"id: {number}\ndata: {run.messages[number]}\n\n"
                number += 1
                # Lets the event loop learn that the page has left. Sending does not wait, and would warn of each message.
                await asyncio.sleep(0)
            if run.is_over and number == len(run.messages):
                yield "event: end\ndata: {}\n\n"
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), 15)
                continue
            # Shows both ends that the other one is alive.
            yield ": still here\n\n"
    finally:
        stop()
