"""The server of `elephan ui`: pages, a small API, and samples as server-sent events."""

import asyncio
import contextlib
import hmac
import json
import secrets
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from elephan import _core
from elephan.registry import algorithms, slow_starts
from elephan.report.write import page as report_page
from elephan.scenario import schema
from elephan.ui.library import Library
from elephan.ui.limits import Limits, mistakes, refuse
from elephan.ui.live import LiveRun, LiveRuns, TooManyError, checked

# Only from this page: no frames, no scripts or connections elsewhere.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
COOKIE = "elephan-token"
Call = Callable[[Request], Awaitable[Response]]


def application(
    results: Path, *, limits: Limits | None = None, hosts: frozenset[str], token: str | None = None
) -> ASGIApp:
    """The web app over a results folder.

    `hosts` are the values of the Host header that are answered; `token`, where it is set, must be in the first request's URL.
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
    return _Guard(Starlette(routes=routes, lifespan=lifespan), hosts, token, limits)


class _Guard:
    """Lets in who may: this host, this origin, this token, and requests of a reasonable size."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str], token: str | None, limits: Limits) -> None:
        self._app, self._hosts, self._token, self._limits = app, hosts, token, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        answer = self._refuse(request)
        if answer is None and self._token is not None and "token" in request.query_params:
            # From here on the cookie stands for it, so that the address can be shown to others.
            answer = RedirectResponse("/", status_code=303)
            answer.set_cookie(COOKIE, self._token, httponly=True, samesite="strict")

        async def send_guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                extra = {
                    "Content-Security-Policy": POLICY,
                    "X-Content-Type-Options": "nosniff",
                    "Referrer-Policy": "no-referrer",
                }
                have = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *((k.lower().encode(), v.encode()) for k, v in extra.items() if k.lower().encode() not in have),
                ]
            await send(message)

        await (answer or self._app)(scope, receive, send_guarded)

    def _refuse(self, request: Request) -> Response | None:  # noqa: PLR0911 - one for each reason
        headers = request.headers
        host = headers.get("host", "")
        # A page elsewhere may let its own name lead here (DNS rebinding): it cannot change the Host header.
        if self._hosts and host not in self._hosts:
            return _error(421, f"host: expected one of {', '.join(sorted(self._hosts))}, found {host!r}")
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return _error(403, f"origin: expected this page's own, found {origin!r}")
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return _error(403, "origin: expected this page's own, found another site's")
        if self._token is not None:
            given = request.query_params.get("token") or request.cookies.get(COOKIE, "")
            if not hmac.compare_digest(given.encode(), self._token.encode()):
                return _error(401, "token: expected the one that `elephan ui` printed, found another or none")
        if request.method == "POST":
            if headers.get("content-type", "").split(";")[0] != "application/json":
                return _error(415, "content-type: expected application/json")
            length = headers.get("content-length", "")
            if not length.isdigit():
                return _error(411, "content-length: expected a number of bytes, found none")
            if int(length) > self._limits.request_bytes:
                return _error(413, f"request: expected at most {self._limits.request_bytes} bytes, found {length}")
        return None


def _error(status: int, text: str) -> Response:
    return JSONResponse({"mistakes": [{"key": "", "problem": text}]}, status_code=status)


def _scenario_error(error: Exception) -> Response:
    return JSONResponse({"mistakes": mistakes(error)}, status_code=422)


async def _body(request: Request) -> dict[str, Any]:
    """The JSON object that was sent."""
    try:
        body = json.loads(await request.body())
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise _core.ScenarioError("request: expected a JSON object, found something else")
    return body


def _part(body: Mapping[str, Any], key: str) -> dict[str, Any]:
    part = body.get(key)
    if not isinstance(part, dict):
        raise _core.ScenarioError(f"{key}: expected a table, found {'nothing' if part is None else 'something else'}")
    return part


def _is_json(text: str) -> bool:
    return text.lstrip().startswith("{")


def _parsed(text: str) -> Any:
    """A scenario file as it is; nothing where it is none, which loading it says better."""
    try:
        return json.loads(text) if _is_json(text) else tomllib.loads(text)
    except (ValueError, RecursionError):
        return None


def _speed(body: Mapping[str, Any], default: float | None) -> float | None:
    speed = body.get("speed", default)
    if speed is None:
        return None
    if isinstance(speed, bool) or not isinstance(speed, int | float) or not 0 <= speed <= 1e6:
        raise _core.ScenarioError(f"speed: expected a number from 0 to 1000000, found {speed!r}")
    return float(speed)


class _Api:
    """What the page asks for."""

    def __init__(self, runs: LiveRuns, library: Library, limits: Limits) -> None:
        self.runs, self.library, self.limits = runs, library, limits
        # Tells a page whether it still speaks to the same server.
        self.boot = secrets.token_hex(8)

    async def home(self, _: Request) -> Response:
        page = (resources.files("elephan.ui") / "static" / "index.html").read_text(encoding="utf-8")
        return HTMLResponse(page, headers={"Cache-Control": "no-store"})

    async def about(self, _: Request) -> Response:
        """All that the page's controls are made from."""

        def entries(found: Any) -> list[dict[str, Any]]:
            return [{"name": e.name, "title": e.title, "source": e.source} for e in found]

        return JSONResponse(
            {
                "version": _core.__version__,
                "boot": self.boot,
                "schema": schema(),
                "algorithms": entries(algorithms()),
                "slow_starts": entries(slow_starts()),
                "limits": self.limits.to_dict(),
            }
        )

    async def check(self, request: Request) -> Response:
        """Check a scenario: nothing wrong, or a line for each mistake."""
        try:
            document = _part(await _body(request), "document")
            scenario = await run_in_threadpool(checked, document, self.limits)
        except _core.ScenarioError as error:
            return _scenario_error(error)
        return JSONResponse({"mistakes": [], "resolved": scenario.document})

    async def file(self, request: Request) -> Response:
        """A scenario as a file."""
        try:
            document = _part(await _body(request), "document")
            await run_in_threadpool(checked, document, self.limits)
            text = _core.to_toml(json.dumps(document))
        except _core.ScenarioError as error:
            return _scenario_error(error)
        except ValueError as error:
            return _error(422, str(error))
        return PlainTextResponse(text, media_type="application/toml")

    async def open(self, request: Request) -> Response:
        """A scenario file as a document."""
        try:
            text = (await _body(request)).get("text")
            if not isinstance(text, str):
                raise _core.ScenarioError("text: expected a scenario file, found something else")
            refuse(_parsed(text), self.limits)
            resolved = await run_in_threadpool(_core.load_scenario, text, "scenario", [], _is_json(text))
        except _core.ScenarioError as error:
            return _scenario_error(error)
        return JSONResponse({"document": json.loads(resolved)})

    async def list_runs(self, _: Request) -> Response:
        return JSONResponse([run.describe() for run in self.runs.all()])

    async def start(self, request: Request) -> Response:
        try:
            body = await _body(request)
            speed = _speed(body, 0.0) or 0.0
            run = await run_in_threadpool(self.runs.start, _part(body, "document"), speed)
        except _core.ScenarioError as error:
            return _scenario_error(error)
        except TooManyError as error:
            return _error(429, str(error))
        return JSONResponse(run.describe(), status_code=201)

    async def control(self, request: Request) -> Response:
        run = self.runs.get(request.path_params["id"])
        if run is None:
            return _no_run()
        try:
            body = await _body(request)
            pause, cancel = body.get("pause"), body.get("cancel", False)
            if not isinstance(pause, bool | None) or not isinstance(cancel, bool):
                raise _core.ScenarioError("control: expected pause and cancel to be true or false")
            run.control(pause=pause, speed=_speed(body, None), cancel=cancel)
        except _core.ScenarioError as error:
            return _scenario_error(error)
        return JSONResponse(run.describe())

    async def change(self, request: Request) -> Response:
        """Add a flow (`flow`), stop one (`stop`: its number in the file), or change a link (`event`), from now on."""
        run = self.runs.get(request.path_params["id"])
        if run is None:
            return _no_run()
        try:
            body = await _body(request)
            await run_in_threadpool(run.change, _changes(body))
        except _core.ScenarioError as error:
            return _scenario_error(error)
        return JSONResponse({"document": run.document})

    async def messages(self, request: Request) -> Response:
        """All messages of a run from the first, or from where the page left off; then those to come, as they come."""
        run = self.runs.get(request.path_params["id"])
        if run is None:
            return _no_run()
        last = request.headers.get("last-event-id", "")
        start = int(last) + 1 if last.isdigit() else 0
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(_follow(run, start), media_type="text/event-stream", headers=headers)

    async def list_results(self, _: Request) -> Response:
        return JSONResponse(await run_in_threadpool(self.library.all))

    async def content(self, request: Request) -> Response:
        """What a result says, or what several runs say beside each other."""
        try:
            content = await run_in_threadpool(self.library.content, request.query_params.getlist("name"))
        except _core.ScenarioError as error:
            return _scenario_error(error)
        if content is None:
            return _no_result()
        return Response(await run_in_threadpool(content.to_json), media_type="application/json")

    async def report(self, request: Request) -> Response:
        """The report, as a file to keep."""
        name = request.query_params.get("name", "")
        content = await run_in_threadpool(self.library.content, [name])
        if content is None:
            return _no_result()
        page = await run_in_threadpool(report_page, content)
        file = name.replace("/", "-")
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{_quoted(file)}.html"}
        return HTMLResponse(page, headers=headers)


def _quoted(text: str) -> str:
    return "".join(letter if letter.isascii() and (letter.isalnum() or letter in "-_.") else "_" for letter in text)


def _no_run() -> Response:
    return _error(404, "run: expected one of this server's runs, found none; it may have been started anew")


def _no_result() -> Response:
    return _error(404, "results: expected a name in the results folder, found none")


def _changes(body: Mapping[str, Any]) -> Callable[[dict[str, Any], str], None]:
    """What a request for a change does to a document."""

    def make(document: dict[str, Any], now: str) -> None:
        if "flow" in body:
            document.setdefault("flow", []).append({**_part(body, "flow"), "start": now})
        elif "event" in body:
            document.setdefault("event", []).append({"at": now, **_part(body, "event")})
        elif isinstance(body.get("stop"), int) and 0 <= body["stop"] < len(document["flow"]):
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
            if run.is_over and number == len(run.messages):
                yield "event: end\ndata: {}\n\n"
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), 15)
                continue
            # Says to both ends that the other is there.
            yield ": still here\n\n"
    finally:
        stop()
