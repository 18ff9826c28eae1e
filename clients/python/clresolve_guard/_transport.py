"""The guard as an httpx transport: `GuardTransport` sits between the payment client and the network.

The rules are implemented once, as a generator of steps (`_flow`). Two drivers perform the steps, one blocking and one
asynchronous.
"""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import aclosing, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar, cast

import anyio
import httpx

from ._challenges import body_carries_credential, carries_credentials, clean
from ._daemon import Answer, Daemon, Signer
from ._decision import Decision, Entry
from ._error import GuardError
from ._options import known_names

# Maximum size of a 402 body, in bytes, both encoded and decoded. The daemon refuses a larger one.
_MAX_REPLY_BYTES = 64 * 1024

# Maximum time for reading the body of a 402, in seconds. A blocking client checks it after each chunk, and its own
# timeout bounds the wait for a chunk.
_MAX_READ_SECONDS = 10.0

# Number of encoded bytes that are decoded at a time. With gzip and deflate they expand at most 1032 times, with zstd to
# half a MiB. Brotli bounds its output at 16 MiB regardless of the input's length.
_MAX_CODED_BYTES = 16

# Maximum size of a response of the daemon, in bytes. A decision on 32 entries has about 10 KiB.
_MAX_ANSWER_BYTES = 256 * 1024

# Maximum number of pending decisions, of at most about 100 KiB each. Beyond it, the oldest are dropped.
_MAX_WAITING = 256

# Maximum number of requests to the daemon per payment header. A 402 response has at most 32 entries, usually one or
# two.
_MAX_QUESTIONS = 32

# Pause before the daemon is asked again, in seconds.
_AGAIN_AFTER = 0.1

# The headers that carry a payment, in x402 versions 2 and 1.
_PAYMENT_HEADERS = (b"payment-signature", b"x-payment")

# The response headers that describe the settlement, in x402 versions 2 and 1.
_SETTLEMENT_HEADERS = ("payment-response", "x-payment-response")

# The statuses of redirects that clients follow, and the headers that contain the target.
_REDIRECTS = (301, 302, 303, 307, 308)
_ELSEWHERE = ("location", "refresh")


@dataclass(frozen=True)
class _Ask:
    """Send a request to the daemon."""

    request: httpx.Request


@dataclass(frozen=True)
class _Pause:
    seconds: float


@dataclass(frozen=True)
class _Send:
    """Send a request to the seller."""

    request: httpx.Request


@dataclass(frozen=True)
class _Read:
    """Read the encoded body of a seller's response, up to one byte beyond the maximum."""

    response: httpx.Response


@dataclass(frozen=True)
class _Close:
    response: httpx.Response


_Step = _Ask | _Pause | _Send | _Read | _Close


_Steps = Generator[_Step, Any, httpx.Response]

_T = TypeVar("_T")


@dataclass(frozen=True)
class Paid:
    """The documents of a payment that was sent, as input for `clresolve receipt verify`.

    url: the URL that was paid for.
    decision: the daemon's decision that allowed the payment, for `--decision`.
    payment: the payment header, for `--payment`.
    settlement: the `PAYMENT-RESPONSE` or `X-PAYMENT-RESPONSE` header of the response, for `--settlement`. `None` if
        there was no such header, or no response.
    """

    url: str
    decision: dict[str, Any]
    payment: str
    settlement: str | None


class GuardTransport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Asks the daemon before it sends a request, and sends a payment only for terms that the daemon allowed.

    Otherwise it raises `GuardError`. An unknown argument raises `TypeError`, an invalid or unsafe one `ValueError`.

    inner: the transport that sends allowed requests, for `httpx.Client` or `httpx.AsyncClient`.
    daemon: `http://127.0.0.1:8402`, `unix:/run/clresolve.sock`, or an https URL. Plain http to another machine requires
        `signer`.
    agent, verb: the agent's normalized ENS name, and the verb that is paid for. With the agent "any", every seller is
        paid whose payee the daemon proves; `verb` may then be left out.
    name: with the agent "any", the seller's normalized ENS name, if you know it: the guard trusts it, unlike the seller's.
    limits: tighter limits than the daemon's, in the form of `POST /v1/decisions`.
    timeout: seconds for each response of the daemon. In a blocking client it applies to each read of the response's
    head.
    ca: an additional trusted certificate for an https daemon, as PEM.
    signer: if given, every decision must be signed by one of its keys. Needs the extra `jws`. The daemon signs none for
        the agent "any".
    on_paid: receives the documents of each payment that was sent, before the response is returned. Exceptions of this
        function are ignored, so that no paid response is lost.
    """

    @known_names
    def __init__(
        self,
        inner: httpx.BaseTransport | httpx.AsyncBaseTransport,
        *,
        daemon: str,
        agent: str,
        name: str | None = None,
        verb: str | None = None,
        limits: dict[str, Any] | None = None,
        timeout: float = 5.0,
        ca: str | None = None,
        signer: Signer | None = None,
        on_paid: Callable[[Paid], None] | None = None,
    ) -> None:
        if not timeout > 0:
            raise ValueError("timeout must be a positive number of seconds")
        self._inner: Any = inner
        self._daemon = Daemon(daemon, agent, name, verb, limits, ca, signer)
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
        """A request without a payment: asks the gate first, if there is one, and submits the terms of a 402 response."""
        if self._daemon.has_gate:
            yield from self._retry(self._daemon.gate(), self._daemon.is_open)
        response: httpx.Response = yield _Send(request)
        if response.status_code in _REDIRECTS:
            yield _Close(response)
            raise GuardError("redirected")
        clean(response)
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
        decision = yield from self._decide(self._daemon.decide(reply))
        if not decision.passing:
            raise GuardError("denied", decision.codes)
        self._waiting.add(_Allowed(reply, decision.passing))
        return copy

    def _decide(self, question: httpx.Request) -> Generator[_Step, Any, Decision]:
        return (yield from self._retry(question, lambda answer: self._daemon.decision(question, answer)))

    def _retry(self, question: httpx.Request, read: Callable[[Answer], _T | None]) -> Generator[_Step, Any, _T]:
        """Asks the daemon until `read` returns a result."""
        until = time.monotonic() + self._timeout
        while not (result := read((yield _Ask(question)))):
            if time.monotonic() >= until:
                raise self._daemon.failure("timeout") from TimeoutError()
            yield _Pause(_AGAIN_AFTER)
        return result

    def _pay(self, request: httpx.Request, payment: str) -> _Steps:
        """A request with a payment: needs a pending decision, which it uses up."""
        refusal = GuardError("no-decision")
        for allowed, entry in self._waiting.of(_url(request))[:_MAX_QUESTIONS]:
            decision = yield from self._decide(self._daemon.signed(allowed.reply, payment, entry.index))
            if decision.abort:
                refusal = GuardError("payment-denied", decision.codes)
            elif not decision.is_about(entry.index):
                raise self._daemon.failure("invalid answer")
            elif self._waiting.take(allowed, entry):
                return _after_payment((yield from self._leave(request, decision.document, payment)))
        raise refusal

    def _leave(self, request: httpx.Request, decision: dict[str, Any], payment: str) -> _Steps:
        """Sends a payment and passes its documents to `on_paid`.

        If no response arrives, the driver closes the generator here. The seller may have received the payment anyway.
        """
        paid = Paid(_url(request), decision, payment, None)
        try:
            response: httpx.Response = yield _Send(request)
            paid = replace(paid, settlement=_settlement(response))
            return response
        finally:
            # A failing `on_paid` must not lose a paid response.
            with suppress(Exception):
                if self._on_paid is not None:
                    self._on_paid(paid)

    def _take(self, step: _Step) -> Any:
        match step:
            case _Ask(request):
                until = time.monotonic() + self._timeout
                with _refusing(self._daemon.connection_failure):
                    response = self._line.handle_request(self._timed(request))
                    return self._answer(response, _bytes_of(response, _MAX_ANSWER_BYTES, until))
            case _Pause(seconds):
                time.sleep(seconds)
            case _Send(request):
                return self._inner.handle_request(request)
            case _Read(response):
                with _refusing(_unreadable):
                    return _bytes_of(response, _MAX_REPLY_BYTES, time.monotonic() + _MAX_READ_SECONDS)
            case _Close(response):
                response.close()

    async def _take_async(self, step: _Step) -> Any:
        match step:
            case _Ask(request):
                with _refusing(self._daemon.connection_failure), anyio.fail_after(self._timeout):
                    response = await self._async_line.handle_async_request(self._timed(request))
                    return self._answer(response, await _async_bytes_of(response, _MAX_ANSWER_BYTES))
            case _Pause(seconds):
                await anyio.sleep(seconds)
            case _Send(request):
                return await self._inner.handle_async_request(request)
            case _Read(response):
                with _refusing(_unreadable), anyio.fail_after(_MAX_READ_SECONDS):
                    return await _async_bytes_of(response, _MAX_REPLY_BYTES)
            case _Close(response):
                await response.aclose()

    def _answer(self, response: httpx.Response, content: bytes) -> Answer:
        if len(content) > _MAX_ANSWER_BYTES:
            raise self._daemon.failure("answer longer than 256 KiB")
        return Answer(response.status_code, response.headers, content)

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
    """A 402 response and its allowed entries."""

    reply: dict[str, Any]
    entries: list[Entry]


class _Waiting:
    """Pending decisions, the newest last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._list: list[_Allowed] = []

    def add(self, allowed: _Allowed) -> None:
        with self._lock:
            self._list = [*self._in_time(), allowed][-_MAX_WAITING:]

    def of(self, url: str) -> list[tuple[_Allowed, Entry]]:
        """The pending decisions for a URL, the newest first, paired with each entry that may still be paid."""
        with self._lock:
            asked = [one for one in reversed(self._in_time()) if one.reply["url"] == url]
            return [(one, entry) for one in asked for entry in one.entries if _is_in_time(entry)]

    def take(self, allowed: _Allowed, entry: Entry) -> bool:
        """Uses up a decision for an entry. `False` if it was already used or has expired."""
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
    """Whether a body has more than one content coding, in one header or several."""
    return len(response.headers.get_list("content-encoding", split_commas=True)) > 1


class _Pieces(httpx.SyncByteStream):
    """A body in pieces that are short enough to bound the size of each decoded piece."""

    def __init__(self, wire: bytes) -> None:
        self._wire = wire

    def __iter__(self) -> Iterator[bytes]:
        for at in range(0, len(self._wire), _MAX_CODED_BYTES):
            yield self._wire[at : at + _MAX_CODED_BYTES]


def _readable(response: httpx.Response, wire: bytes) -> tuple[httpx.Response, bytes]:
    """A response that the client can read again, and its body, decoded as the client will decode it."""

    def copy(stream: httpx.SyncByteStream) -> httpx.Response:
        return httpx.Response(402, headers=response.headers, stream=stream, extensions=response.extensions)

    if len(wire) > _MAX_REPLY_BYTES:
        raise GuardError("unreadable")
    if "content-encoding" not in response.headers:
        return copy(httpx.ByteStream(wire)), wire
    body = bytearray()
    with _refusing(_unreadable):
        for piece in copy(_Pieces(wire)).iter_bytes():
            body += piece
            if len(body) > _MAX_REPLY_BYTES:
                raise GuardError("unreadable")
    return copy(httpx.ByteStream(wire)), bytes(body)


def _after_payment(response: httpx.Response) -> httpx.Response:
    """The response to a payment, without the payment challenges of other protocols.

    The target of a redirect is removed, because a client that follows it would pay again.
    """
    clean(response)
    if response.status_code in _REDIRECTS:
        for name in _ELSEWHERE:
            response.headers.pop(name, None)
    return response


def _settlement(response: httpx.Response) -> str | None:
    found = (response.headers.get(name) for name in _SETTLEMENT_HEADERS)
    return next((value for value in found if value is not None), None)


def _url(request: httpx.Request) -> str:
    """The URL without the parts that are not sent."""
    return str(request.url.copy_with(fragment=None, username=None, password=None))


def _text(octets: bytes) -> str:
    return octets.decode("latin-1")


def _bytes_of(response: httpx.Response, most: int, until: float) -> bytes:
    """The encoded body, truncated to `most` + 1 bytes. Closes the response."""
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
    # Otherwise the event loop would close the generator only when it ends.
    generator = cast("AsyncGenerator[bytes]", response.aiter_raw())
    async with aclosing(response), aclosing(generator) as chunks:
        async for chunk in chunks:
            whole += chunk
            if len(whole) > most:
                break
    return bytes(whole[: most + 1])


def _unreadable(_: Exception) -> GuardError:
    return GuardError("unreadable")


@contextmanager
def _refusing(refusal: Callable[[Exception], GuardError]) -> Iterator[None]:
    """Turns errors of the network, of decoding and of time into a refusal with the error as its cause."""
    try:
        yield
    except (httpx.HTTPError, httpx.StreamError, OSError, TimeoutError) as error:
        raise refusal(error) from error
