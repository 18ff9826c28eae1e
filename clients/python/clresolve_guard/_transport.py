"""The guard as a transport of httpx: `GuardTransport` stands between the payment client and the network.

The rules are written once, as a generator of steps (`_flow`). Two drivers take the steps, one blocking and one not.
"""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import aclosing, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import anyio
import httpx

from ._challenges import body_carries_credential, carries_credentials, without_challenges
from ._daemon import Answer, Daemon, Signer
from ._decision import Entry
from ._error import Code, GuardError

# Longest 402 reply, in bytes, on the wire and decoded: the daemon refuses a longer one.
_MAX_REPLY_BYTES = 64 * 1024

# Longest time in which the body of a 402 is read, in seconds. A blocking client bounds each silence by its own timeout.
_MAX_READ_SECONDS = 10.0

# Bytes of a coded 402 that are decoded at a time. By gzip and deflate they become at most 1032 times as many, by zstd
# half a MiB. Brotli bounds a piece at 16 MiB, whatever its length.
_MAX_CODED_BYTES = 16

# Longest answer of the daemon, in bytes. A decision on 32 entries has some 10 KiB.
_MAX_ANSWER_BYTES = 256 * 1024

# Most decisions that wait for their payment, of some 100 KiB each at most. Beyond it the oldest are forgotten.
_MAX_WAITING = 256

# Most questions about one payment header: a reply has at most 32 entries, and most have one or two.
_MAX_QUESTIONS = 32

# Seconds between two questions to a gate that needs longer than its own deadline.
_AGAIN_AFTER = 0.1

# The headers that carry a payment, in x402 versions 2 and 1.
_PAYMENT_HEADERS = (b"payment-signature", b"x-payment")

# The headers of a reply that name the settlement, in versions 2 and 1.
_SETTLEMENT_HEADERS = ("payment-response", "x-payment-response")

# The statuses that clients follow, and the headers that say where to.
_REDIRECTS = (301, 302, 303, 307, 308)
_ELSEWHERE = ("location", "refresh")


@dataclass(frozen=True)
class _Ask:
    """A question to the daemon."""

    request: httpx.Request


@dataclass(frozen=True)
class _Pause:
    seconds: float


@dataclass(frozen=True)
class _Send:
    """A request to the seller."""

    request: httpx.Request


@dataclass(frozen=True)
class _Read:
    """The body of a seller's reply as it came over the wire, or one byte more than is read of it."""

    response: httpx.Response


@dataclass(frozen=True)
class _Close:
    response: httpx.Response


_Step = _Ask | _Pause | _Send | _Read | _Close


_Steps = Generator[_Step, Any, httpx.Response]


@dataclass(frozen=True)
class Paid:
    """What is to be kept of a payment that left, for `clresolve receipt verify`.

    url: the URL that was paid for.
    decision: the decision that let the payment leave, as the daemon wrote it: `--decision`.
    payment: the payment header: `--payment`.
    settlement: the reply's `PAYMENT-RESPONSE` or `X-PAYMENT-RESPONSE`: `--settlement`. `None`: there was none, or no
        reply.
    """

    url: str
    decision: dict[str, Any]
    payment: str
    settlement: str | None


class GuardTransport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Asks the daemon before a request leaves, and lets a payment out only for terms that it allowed.

    It refuses with `GuardError`.

    inner: the transport that sends what may leave, for `httpx.Client` or for `httpx.AsyncClient`.
    daemon: `http://127.0.0.1:8402`, `unix:/run/clresolve.sock`, or an https URL. Plain http to another machine is
        refused without `signer`.
    agent, verb: the agent's ENS name in its normal form, and what is paid for.
    limits: limits that are tighter than the daemon's, as `POST /v1/decisions` takes them.
    timeout: seconds for each answer of the daemon. A blocking client bounds the wait for its head by each read.
    ca: a certificate to trust for an https daemon beside those of the platform, as PEM.
    signer: with it every decision must be signed by one of its keys; needs the extra `jws`.
    on_paid: takes what is to be kept of each payment that left, before its reply is handed on. The exceptions of this
        function are dropped, so that no paid reply is lost.
    """

    def __init__(
        self,
        inner: httpx.BaseTransport | httpx.AsyncBaseTransport,
        *,
        daemon: str,
        agent: str,
        verb: str,
        limits: dict[str, Any] | None = None,
        timeout: float = 5.0,
        ca: str | None = None,
        signer: Signer | None = None,
        on_paid: Callable[[Paid], None] | None = None,
    ) -> None:
        if not timeout > 0:
            raise ValueError("timeout is a number of seconds above 0")
        self._inner: Any = inner
        self._daemon = Daemon(daemon, agent, verb, limits, ca, signer)
        self._timeout = timeout
        self._on_paid = on_paid
        self._waiting = _Waiting()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        with closing(self._flow(request)) as flow:
            try:
                step = next(flow)
                while True:
                    step = flow.send(self._take(step))
            except StopIteration as end:
                response: httpx.Response = end.value
                return response

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        with closing(self._flow(request)) as flow:
            try:
                step = next(flow)
                while True:
                    step = flow.send(await self._take_async(step))
            except StopIteration as end:
                response: httpx.Response = end.value
                return response

    def close(self) -> None:
        self._inner.close()
        if "_line" in vars(self):
            self._line.close()

    async def aclose(self) -> None:
        await self._inner.aclose()
        if "_async_line" in vars(self):
            await self._async_line.aclose()

    def _flow(self, request: httpx.Request) -> _Steps:
        if carries_credentials(request.headers) or body_carries_credential(request):
            raise GuardError("other-protocol")
        payments = [value for name, value in request.headers.raw if name.lower() in _PAYMENT_HEADERS]
        if len(payments) > 1:
            raise GuardError("two-payments")
        if payments:
            return (yield from self._pay(request, payments[0].decode("latin-1")))
        return (yield from self._browse(request))

    def _browse(self, request: httpx.Request) -> _Steps:
        """A request without a payment: the gate first, and of a 402 the terms."""
        yield from self._pass_gate()
        response: httpx.Response = yield _Send(request)
        if response.status_code in _REDIRECTS:
            yield _Close(response)
            raise GuardError("redirected")
        response.headers = without_challenges(response.headers)
        if response.status_code != 402:
            return response
        if _has_several_codings(response):
            yield _Close(response)
            raise GuardError("unreadable")
        wire: bytes = yield _Read(response)
        copy, body = _readable(response, wire)
        reply = {
            "status": 402,
            "url": _url(request),
            "headers": [[_text(name), _text(value)] for name, value in response.headers.raw],
            "body_base64": base64.b64encode(body).decode(),
        }
        question = self._daemon.decide(reply)
        decision = self._daemon.decision(question, (yield _Ask(question)))
        if not decision.passing:
            raise GuardError("denied", decision.codes)
        self._waiting.add(_Allowed(reply, decision.passing))
        return copy

    def _pass_gate(self) -> Generator[_Step, Any, None]:
        until = time.monotonic() + self._timeout
        while not self._daemon.is_open((yield _Ask(self._daemon.gate()))):
            if time.monotonic() >= until:
                raise GuardError("unavailable")
            yield _Pause(_AGAIN_AFTER)

    def _pay(self, request: httpx.Request, payment: str) -> _Steps:
        """A request with a payment: only for a decision that waits, and only once for it."""
        refusal = GuardError("no-decision")
        for allowed, entry in self._waiting.of(_url(request))[:_MAX_QUESTIONS]:
            question = self._daemon.signed(allowed.reply, payment, entry.index)
            decision = self._daemon.decision(question, (yield _Ask(question)))
            if decision.abort:
                refusal = GuardError("payment-denied", decision.codes)
            elif not decision.is_about(entry.index):
                raise GuardError("unavailable")
            elif self._waiting.take(allowed, entry):
                return _after_payment((yield from self._leave(request, decision.document, payment)))
        raise refusal

    def _leave(self, request: httpx.Request, decision: dict[str, Any], payment: str) -> _Steps:
        """Sends a payment, and hands out what is to be kept of it.

        Where no reply comes the driver closes the flow here. The seller may have the payment all the same.
        """
        paid = Paid(_url(request), decision, payment, None)
        try:
            response: httpx.Response = yield _Send(request)
            paid = replace(paid, settlement=_settlement(response))
            return response
        finally:
            # Whatever the program does with it: a reply that was paid for is not lost.
            with suppress(Exception):
                if self._on_paid is not None:
                    self._on_paid(paid)

    def _take(self, step: _Step) -> Any:
        match step:
            case _Ask(request):
                until = time.monotonic() + self._timeout
                with _refusing("unavailable"):
                    response = self._line.handle_request(self._timed(request))
                    return _answer(response, _bytes_of(response, _MAX_ANSWER_BYTES, until))
            case _Pause(seconds):
                time.sleep(seconds)
            case _Send(request):
                return self._inner.handle_request(request)
            case _Read(response):
                with _refusing("unreadable"):
                    return _bytes_of(response, _MAX_REPLY_BYTES, time.monotonic() + _MAX_READ_SECONDS)
            case _Close(response):
                response.close()

    async def _take_async(self, step: _Step) -> Any:
        match step:
            case _Ask(request):
                with _refusing("unavailable"), anyio.fail_after(self._timeout):
                    response = await self._async_line.handle_async_request(self._timed(request))
                    return _answer(response, await _async_bytes_of(response, _MAX_ANSWER_BYTES))
            case _Pause(seconds):
                await anyio.sleep(seconds)
            case _Send(request):
                return await self._inner.handle_async_request(request)
            case _Read(response):
                with _refusing("unreadable"), anyio.fail_after(_MAX_READ_SECONDS):
                    return await _async_bytes_of(response, _MAX_REPLY_BYTES)
            case _Close(response):
                await response.aclose()

    def _timed(self, request: httpx.Request) -> httpx.Request:
        request.extensions["timeout"] = httpx.Timeout(self._timeout).as_dict()
        return request

    @cached_property
    def _line(self) -> httpx.HTTPTransport:
        return httpx.HTTPTransport(verify=self._daemon.tls(), trust_env=False, uds=self._daemon.socket)

    @cached_property
    def _async_line(self) -> httpx.AsyncHTTPTransport:
        return httpx.AsyncHTTPTransport(verify=self._daemon.tls(), trust_env=False, uds=self._daemon.socket)


@dataclass(frozen=True, eq=False)
class _Allowed:
    """A reply, and its entries that may be paid."""

    reply: dict[str, Any]
    entries: list[Entry]


class _Waiting:
    """The decisions that wait for their payment, the newest last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._list: list[_Allowed] = []

    def add(self, allowed: _Allowed) -> None:
        with self._lock:
            self._list = [*self._in_time(), allowed][-_MAX_WAITING:]

    def of(self, url: str) -> list[tuple[_Allowed, Entry]]:
        """Those for a URL, the newest first, each with each of its entries that may still be paid."""
        with self._lock:
            asked = [one for one in reversed(self._in_time()) if one.reply["url"] == url]
            return [(one, entry) for one in asked for entry in one.entries if _is_in_time(entry)]

    def take(self, allowed: _Allowed, entry: Entry) -> bool:
        """Takes a decision out for an entry, once. Whether it was still there, and the entry in time."""
        with self._lock:
            rest = self._in_time()
            if allowed not in rest or not _is_in_time(entry):
                return False
            self._list = [one for one in rest if one is not allowed]
            return True

    def _in_time(self) -> list[_Allowed]:
        return [one for one in self._list if any(_is_in_time(entry) for entry in one.entries)]


def _is_in_time(entry: Entry) -> bool:
    return time.time() < entry.until


def _has_several_codings(response: httpx.Response) -> bool:
    """Whether a body is coded more than once, in one header or in several."""
    return len(response.headers.get_list("content-encoding", split_commas=True)) > 1


class _Pieces(httpx.SyncByteStream):
    """A body in pieces so short that each of them decodes to little."""

    def __init__(self, wire: bytes) -> None:
        self._wire = wire

    def __iter__(self) -> Iterator[bytes]:
        for at in range(0, len(self._wire), _MAX_CODED_BYTES):
            yield self._wire[at : at + _MAX_CODED_BYTES]


def _readable(response: httpx.Response, wire: bytes) -> tuple[httpx.Response, bytes]:
    """The reply to hand on, to be read again, and its decoded body, as the client above the guard decodes it."""

    def copy(stream: httpx.SyncByteStream) -> httpx.Response:
        return httpx.Response(402, headers=response.headers, stream=stream, extensions=response.extensions)

    if len(wire) > _MAX_REPLY_BYTES:
        raise GuardError("unreadable")
    if "content-encoding" not in response.headers:
        return copy(httpx.ByteStream(wire)), wire
    body = bytearray()
    with _refusing("unreadable"):
        for piece in copy(_Pieces(wire)).iter_bytes():
            body += piece
            if len(body) > _MAX_REPLY_BYTES:
                raise GuardError("unreadable")
    return copy(httpx.ByteStream(wire)), bytes(body)


def _after_payment(response: httpx.Response) -> httpx.Response:
    """The reply to a payment, without the payment challenges of other protocols.

    A redirect leads nowhere, else a client above the guard would buy again.
    """
    response.headers = without_challenges(response.headers)
    if response.status_code in _REDIRECTS:
        for name in _ELSEWHERE:
            response.headers.pop(name, None)
    return response


def _settlement(response: httpx.Response) -> str | None:
    found = (response.headers.get(name) for name in _SETTLEMENT_HEADERS)
    return next((value for value in found if value is not None), None)


def _url(request: httpx.Request) -> str:
    """The URL as it is asked: without what is not sent."""
    return str(request.url.copy_with(fragment=None, username=None, password=None))


def _text(octets: bytes) -> str:
    return octets.decode("latin-1")


def _answer(response: httpx.Response, content: bytes) -> Answer:
    if len(content) > _MAX_ANSWER_BYTES:
        raise GuardError("unavailable")
    return Answer(response.status_code, response.headers, content)


def _bytes_of(response: httpx.Response, most: int, until: float) -> bytes:
    """The body as it came over the wire; where it is longer than `most`, one byte more than that. Closes the reply."""
    whole = bytearray()
    with closing(response):
        for chunk in response.iter_raw():
            if time.monotonic() > until:
                raise TimeoutError
            whole += chunk
            if len(whole) > most:
                break
    return bytes(whole[: most + 1])


async def _async_bytes_of(response: httpx.Response, most: int) -> bytes:
    whole = bytearray()
    # Left open, the generator would be closed by whoever ends the event loop.
    generator = cast("AsyncGenerator[bytes]", response.aiter_raw())
    async with aclosing(response), aclosing(generator) as chunks:
        async for chunk in chunks:
            whole += chunk
            if len(whole) > most:
                break
    return bytes(whole[: most + 1])


@contextmanager
def _refusing(code: Code) -> Iterator[None]:
    """No answer of the daemon, or a reply that breaks off or is late, is a refusal. The error behind it is its cause."""
    try:
        yield
    except (httpx.HTTPError, httpx.StreamError, OSError, TimeoutError) as error:
        raise GuardError(code) from error
