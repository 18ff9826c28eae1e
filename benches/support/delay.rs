//! A delayed network: everything that is sent to the sandbox arrives later by a fixed time.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clresolve_resolver::Config;
use clresolve_resolver::config::ConnectToRule;

/// The added delay of each request.
pub(crate) const DELAY: Duration = Duration::from_millis(50);

/// Number of bytes forwarded at once.
const CHUNK: usize = 64 * 1024;

/// A request through the proxy: when it was sent, and when its response began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trip {
    sent: Instant,
    answered: Instant,
}

/// All requests since the log was last drained.
pub(crate) type Log = Arc<Mutex<Vec<Trip>>>;

/// `config` with a delaying proxy in front of the whole sandbox, and the log of its requests.
pub(crate) fn far_away(config: &Config) -> (Config, Log) {
    let log = Log::default();
    let mut config = config.clone();
    for endpoint in &mut config.chain.endpoints {
        let near = line(address(endpoint.url.authority()), &log);
        endpoint.url.set_port(Some(near.port())).expect("the URL has a host");
    }
    for endpoint in &mut config.beacon.endpoints {
        let near = line(address(endpoint.url.authority()), &log);
        endpoint.url.set_port(Some(near.port())).expect("the URL has a host");
    }
    // All hosts of the sandbox share one listener, so the rules share one proxy.
    let mut web = None;
    for rule in &mut config.network.connect_to {
        let text = rule.to_string();
        let mut parts = text.splitn(3, ':');
        let (host, port, target) = (parts.next(), parts.next(), parts.next());
        let (Some(host), Some(port), Some(target)) = (host, port, target) else { panic!("{text} has three parts") };
        let near = *web.get_or_insert_with(|| line(address(target), &log));
        *rule = format!("{host}:{port}:{near}").parse::<ConnectToRule>().expect("it was a rule before");
    }
    (config, log)
}

pub(crate) fn taken(log: &Log) -> Vec<Trip> {
    std::mem::take(&mut *log.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Maximum number of requests that were each sent after the previous response: the length of the critical path.
pub(crate) fn one_after_another(trips: &[Trip]) -> usize {
    let mut trips = trips.to_vec();
    trips.sort_by_key(|trip| trip.answered);
    let mut last: Option<Instant> = None;
    let mut length = 0;
    for trip in trips {
        if last.is_none_or(|answered| trip.sent >= answered) {
            length += 1;
            last = Some(trip.answered);
        }
    }
    length
}

fn address(authority: &str) -> SocketAddr {
    authority.parse().expect("the world listens on addresses")
}

/// Starts a proxy to `far`. Returns its address.
pub(crate) fn line(far: SocketAddr, log: &Log) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port can be had");
    let near = listener.local_addr().expect("it is bound");
    let log = Arc::clone(log);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let there = TcpStream::connect(far).expect("the world listens");
            pass(stream, there, Arc::clone(&log));
        }
    });
    near
}

/// Forwards bytes in both directions, those to the far end after [`DELAY`].
fn pass(near: TcpStream, far: TcpStream, log: Log) {
    let (queue, due) = mpsc::channel::<(Instant, Vec<u8>)>();
    let sent = Arc::new(Mutex::new(None));
    for stream in [&near, &far] {
        stream.set_nodelay(true).expect("a socket");
    }
    let copy = |stream: &TcpStream| stream.try_clone().expect("a socket");
    let (mut from_near, mut to_far) = (copy(&near), copy(&far));
    let open = Arc::clone(&sent);
    thread::spawn(move || {
        let mut buffer = vec![0; CHUNK];
        while let Some(read) = from_near.read(&mut buffer).ok().filter(|read| *read > 0) {
            let now = Instant::now();
            open.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(now);
            if queue.send((now + DELAY, buffer[..read].to_vec())).is_err() {
                return;
            }
        }
    });
    thread::spawn(move || {
        while let Ok((at, bytes)) = due.recv() {
            wait_until(at);
            if to_far.write_all(&bytes).is_err() {
                return;
            }
        }
        let _ = to_far.shutdown(Shutdown::Write);
    });
    let (mut from_far, mut to_near) = (far, near);
    thread::spawn(move || {
        let mut buffer = vec![0; CHUNK];
        while let Some(read) = from_far.read(&mut buffer).ok().filter(|read| *read > 0) {
            let answered = Instant::now();
            if let Some(sent) = sent.lock().unwrap_or_else(PoisonError::into_inner).take() {
                log.lock().unwrap_or_else(PoisonError::into_inner).push(Trip { sent, answered });
            }
            if to_near.write_all(&buffer[..read]).is_err() {
                return;
            }
        }
        let _ = to_near.shutdown(Shutdown::Both);
    });
}

#[expect(clippy::disallowed_methods, reason = "the delay is real time")]
fn wait_until(at: Instant) {
    thread::sleep(at.saturating_duration_since(Instant::now()));
}
