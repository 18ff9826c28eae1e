//! The stream between the socket and hyper: it lets whole, good heads through, and answers the others itself.
//!
//! hyper never sees a head that it would refuse; where one comes it sees the end of the stream, finishes what is in work
//! and shuts the stream down. The refusal is written then, after the answers to what came before.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::answer;
use super::head::{self, Face, Framing, Head};
use super::shares::Client;
use crate::config::HttpConfig;
use crate::reason::Refusal;
use crate::telemetry;

/// Bytes read at once while a head arrives; most heads have a few hundred.
const READ_BYTES: usize = 2048;

/// Most bytes of an unread request that are taken after its answer: to close on unread bytes makes the system tell the
/// client that the connection broke, and many clients throw the answer away then.
const LINGER_BYTES: usize = 1 << 20;

/// The same in time.
const LINGER_TIME: Duration = Duration::from_secs(2);

/// `S`, behind the judge of heads.
pub(super) struct Front<S> {
    stream: S,
    client: Client,
    limits: HttpConfig,
    /// Bytes that were read and not handed on: from `start` on.
    buffer: Vec<u8>,
    start: usize,
    stage: Stage,
    timer: Timer,
    closing: Option<Closing>,
}

/// What comes next on the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// A request, some time.
    Idle,
    /// The rest of a head.
    Head,
    /// So many good bytes of a head, and then the body.
    Good(usize, Framing),
    /// So many bytes of a body.
    Body(u64),
    /// A body in chunks. The connection ends after it.
    Chunks,
    /// Nothing more is read.
    Over,
}

/// The end of the stream.
struct Closing {
    refusal: Vec<u8>,
    written: usize,
    is_shut: bool,
    lingers: bool,
    taken: usize,
}

impl<S> Front<S> {
    pub(super) const fn new(stream: S, client: Client, limits: HttpConfig) -> Self {
        Self {
            stream,
            client,
            limits,
            buffer: Vec::new(),
            start: 0,
            stage: Stage::Idle,
            timer: Timer::new(),
            closing: None,
        }
    }

    /// Judges what has been read of a head.
    fn judge(&mut self) {
        let bytes = &self.buffer[self.start..];
        if bytes.is_empty() {
            return;
        }
        match head::judge(bytes, self.limits.head_bytes, self.limits.headers) {
            Head::Partial if self.stage == Stage::Idle => {
                self.stage = Stage::Head;
                self.timer.set(self.limits.head_timeout);
            }
            Head::Partial => {}
            Head::Whole(length, framing) => self.stage = Stage::Good(length, framing),
            Head::Bad(refusal) => self.refuse(refusal),
        }
    }

    /// Ends the stream with a refusal of the request that has begun.
    fn refuse(&mut self, refusal: Refusal) {
        let face = head::face(&self.buffer[self.start..]);
        let (status, bytes) = answer::to_bad_head(face, refusal);
        telemetry::head_refused(if face == Face::Gate { "gate" } else { "report" });
        tracing::info!(code = refusal.slug(), status, client = %self.client.0, "the head of a request was refused");
        self.stage = Stage::Over;
        self.closing = Some(Closing::new(bytes, true));
    }

    /// Hands on bytes that were read.
    fn hand_on(&mut self, most: usize, into: &mut ReadBuf<'_>) -> usize {
        let handed = most.min(into.remaining()).min(self.buffer.len() - self.start);
        into.put_slice(&self.buffer[self.start..self.start + handed]);
        self.start += handed;
        if self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
        }
        handed
    }
}

impl<S: AsyncRead + Unpin> Front<S> {
    /// Reads more of a head; the end of the stream is `false`.
    fn poll_more(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let filled = self.buffer.len();
        self.buffer.resize(filled + READ_BYTES, 0);
        let mut free = ReadBuf::new(&mut self.buffer[filled..]);
        let polled = Pin::new(&mut self.stream).poll_read(context, &mut free);
        let read = free.filled().len();
        self.buffer.truncate(filled + read);
        ready!(polled)?;
        Poll::Ready(Ok(read > 0))
    }

    /// Reads until the stage is another than that of a head that arrives.
    fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.judge();
        while matches!(self.stage, Stage::Idle | Stage::Head) {
            match self.poll_more(context) {
                Poll::Ready(Ok(true)) => self.judge(),
                Poll::Ready(Ok(false)) if self.buffer[self.start..].trim_ascii_start().is_empty() => {
                    self.stage = Stage::Over;
                }
                Poll::Ready(Ok(false)) => self.refuse(Refusal::RequestMalformed),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    if self.stage == Stage::Idle {
                        self.timer.set_once(self.limits.idle_timeout);
                    }
                    ready!(self.timer.poll(context));
                    match self.stage {
                        Stage::Head => self.refuse(Refusal::RequestTimeout),
                        _ => self.stage = Stage::Over,
                    }
                }
            }
        }
        self.timer.unset();
        Poll::Ready(Ok(()))
    }

    /// Hands on what was read of a body, else what comes of it: at most `most` bytes.
    fn poll_body(&mut self, context: &mut Context<'_>, most: usize, into: &mut ReadBuf<'_>) -> Poll<io::Result<usize>> {
        if self.start < self.buffer.len() {
            return Poll::Ready(Ok(self.hand_on(most, into)));
        }
        let room = most.min(into.remaining());
        let mut part = ReadBuf::new(into.initialize_unfilled_to(room));
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut part))?;
        let read = part.filled().len();
        into.advance(read);
        Poll::Ready(Ok(read))
    }

    /// Takes what still comes of the last request, within bounds, and forgets it.
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            self.buffer.clear();
            self.start = 0;
            match self.poll_more(context) {
                Poll::Ready(Ok(true)) => {}
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return self.timer.poll(context),
            }
            let Some(closing) = &mut self.closing else { return Poll::Ready(()) };
            closing.taken += self.buffer.len();
            if closing.taken >= LINGER_BYTES {
                return Poll::Ready(());
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Front<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            match self.stage {
                Stage::Idle | Stage::Head => ready!(self.poll_head(context))?,
                Stage::Good(left, framing) => {
                    self.stage = match (left - self.hand_on(left, into), framing) {
                        (0, Framing::Sized(0)) => Stage::Idle,
                        (0, Framing::Sized(body)) => Stage::Body(body),
                        (0, Framing::Chunked) => Stage::Chunks,
                        (left, framing) => Stage::Good(left, framing),
                    };
                    return Poll::Ready(Ok(()));
                }
                Stage::Body(left) => {
                    let most = usize::try_from(left).unwrap_or(usize::MAX);
                    let read = ready!(self.poll_body(context, most, into))?;
                    self.stage = match left - read as u64 {
                        _ if read == 0 => Stage::Over,
                        0 => Stage::Idle,
                        left => Stage::Body(left),
                    };
                    return Poll::Ready(Ok(()));
                }
                Stage::Chunks => {
                    if ready!(self.poll_body(context, usize::MAX, into))? == 0 {
                        self.stage = Stage::Over;
                    }
                    return Poll::Ready(Ok(()));
                }
                Stage::Over => return Poll::Ready(Ok(())),
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Front<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.closing.is_none() {
            match this.stage {
                // The daemon ends before the head did.
                Stage::Head => this.refuse(Refusal::Draining),
                stage => {
                    let lingers = !this.buffer.is_empty() || !matches!(stage, Stage::Idle | Stage::Over);
                    this.closing = Some(Closing::new(Vec::new(), lingers));
                }
            }
        }
        let Some(closing) = &mut this.closing else { return Poll::Ready(Ok(())) };
        while closing.written < closing.refusal.len() {
            let rest = &closing.refusal[closing.written..];
            let written = ready!(Pin::new(&mut this.stream).poll_write(context, rest))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            closing.written += written;
        }
        if !closing.is_shut {
            ready!(Pin::new(&mut this.stream).poll_flush(context))?;
            ready!(Pin::new(&mut this.stream).poll_shutdown(context))?;
            closing.is_shut = true;
            this.timer.set(LINGER_TIME);
        }
        if closing.lingers {
            ready!(this.poll_linger(context));
        }
        Poll::Ready(Ok(()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

impl Closing {
    const fn new(refusal: Vec<u8>, lingers: bool) -> Self {
        Self { refusal, written: 0, is_shut: false, lingers, taken: 0 }
    }
}

/// One timer for all stages. The system's is touched only where a stage takes long: most requests set and unset it
/// without.
struct Timer {
    deadline: Option<Instant>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Timer {
    const fn new() -> Self {
        Self { deadline: None, sleep: None }
    }

    fn set(&mut self, limit: Duration) {
        self.deadline = Some(Instant::now() + limit);
    }

    fn set_once(&mut self, limit: Duration) {
        if self.deadline.is_none() {
            self.set(limit);
        }
    }

    fn unset(&mut self) {
        self.deadline = None;
    }

    /// Ready once the time is over; never where none is set.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = self.deadline else { return Poll::Pending };
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if sleep.deadline() > deadline {
            sleep.as_mut().reset(deadline);
        }
        ready!(sleep.as_mut().poll(context));
        if sleep.deadline() < deadline {
            sleep.as_mut().reset(deadline);
            ready!(sleep.as_mut().poll(context));
        }
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests;
