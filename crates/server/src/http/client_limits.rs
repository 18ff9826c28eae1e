//! Per-client limits. Each client has its own permits and cannot use those of another.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use clresolve_core::reason::RefusalCode;
use clresolve_resolver::cpu_share::{ClientCpuPermit, ClientCpuShare, CpuJobUrgency};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A client, as the limits and the log identify it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ClientIdentity {
    /// An IPv4 address, or the first 64 bits of an IPv6 address, which one customer controls. All loopback addresses
    /// count as `127.0.0.1`, since each local process may use any of them.
    Address(IpAddr),
    /// A user of this machine, whose processes connect through a Unix socket, which has no IP address.
    #[cfg_attr(not(unix), expect(dead_code, reason = "only Unix sockets have such clients"))]
    User(u32),
    /// Web pages of other sites, regardless of the browser that sends their requests. They cannot start resolutions.
    Pages,
    /// Web pages whose requests a proxy checks at the gate. These can start resolutions.
    PagesAtGate,
    /// Requests at the gate from this machine to a public host name: of a proxy that passes on its client's `Host`, or
    /// of a web page that uses DNS rebinding. These can start resolutions.
    OtherHostAtGate,
}

impl ClientIdentity {
    /// Whether the client may start work that costs more than a cached answer.
    pub(super) fn check_may_start_work(self) -> Result<(), RefusalCode> {
        if self == Self::Pages { Err(RefusalCode::HostUnexpected) } else { Ok(()) }
    }
}

impl From<IpAddr> for ClientIdentity {
    fn from(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            local if local.is_loopback() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(six) => Ipv6Addr::from_bits(six.to_bits() >> 64 << 64).into(),
            four @ IpAddr::V4(_) => four,
        })
    }
}

impl fmt::Display for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::User(user) => write!(f, "user {user}"),
            Self::Pages => f.write_str("pages of other sites"),
            Self::PagesAtGate => f.write_str("pages of other sites at the gate"),
            Self::OtherHostAtGate => f.write_str("local requests to other hosts at the gate"),
        }
    }
}

/// Permits for each client. A client is in the table only while it holds a permit or waits for one. The overall limit
/// on the guarded resource therefore bounds the table too.
pub(super) struct ClientPermitTable {
    permits: usize,
    table: Arc<Mutex<HashMap<ClientIdentity, Arc<Semaphore>>>>,
}

pub(super) struct ClientPermit {
    _permit: OwnedSemaphorePermit,
    listed: ClientPermitEntry,
    most: usize,
}

impl ClientPermit {
    /// How many other permits the client holds.
    fn other_permit_count(&self) -> usize {
        self.most.saturating_sub(self.listed.permits.available_permits() + 1)
    }
}

impl ClientPermitTable {
    pub(super) fn new(permits: usize) -> Self {
        let permits = if clresolve_core::mutant!("clients-unlimited") { Semaphore::MAX_PERMITS } else { permits };
        Self { permits, table: Arc::default() }
    }

    /// Returns a permit for `client` if one is left.
    pub(super) fn try_acquire(&self, client: ClientIdentity) -> Option<ClientPermit> {
        self.try_acquire_many(client, 1)
    }

    /// Returns this many permits for `client` if they are left.
    fn try_acquire_many(&self, client: ClientIdentity, permits: u32) -> Option<ClientPermit> {
        let listed = self.entry_for_client(client);
        let permit = Arc::clone(&listed.permits).try_acquire_many_owned(permits).ok()?;
        Some(ClientPermit { _permit: permit, listed, most: self.max_permits(client) })
    }

    /// Waits until `client` has a permit left and returns it.
    pub(super) async fn acquire(&self, client: ClientIdentity) -> ClientPermit {
        let listed = self.entry_for_client(client);
        let permit = Arc::clone(&listed.permits).acquire_owned().await.expect("the semaphore is never closed");
        ClientPermit { _permit: permit, listed, most: self.max_permits(client) }
    }

    /// How many permits a client may hold. An address can also send requests as pages do, or to other hosts. These have
    /// a quarter each, so that all of them together leave permits to others.
    const fn max_permits(&self, client: ClientIdentity) -> usize {
        match client {
            ClientIdentity::Address(_) | ClientIdentity::User(_) | ClientIdentity::Pages => self.permits,
            ClientIdentity::PagesAtGate | ClientIdentity::OtherHostAtGate => self.permits.div_ceil(4),
        }
    }

    fn entry_for_client(&self, client: ClientIdentity) -> ClientPermitEntry {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let permits = table.entry(client).or_insert_with(|| Arc::new(Semaphore::new(self.max_permits(client))));
        ClientPermitEntry { client, permits: Arc::clone(permits), table: Arc::clone(&self.table) }
    }
}

/// Each client's share of the CPU pool's queue. Each urgency has separate slots, so that a client's documents do not
/// delay its decisions.
pub(super) struct ClientCpuJobSlots([ClientPermitTable; CpuJobUrgency::ALL.len()]);

impl ClientCpuJobSlots {
    pub(super) fn new(of_client: usize) -> Self {
        Self(CpuJobUrgency::ALL.map(|_| ClientPermitTable::new(of_client)))
    }
}

/// One client's share of the CPU pool's queue.
pub(super) struct ClientCpuJobShare {
    pub(super) client: ClientIdentity,
    pub(super) slots: Arc<ClientCpuJobSlots>,
}

#[async_trait]
impl ClientCpuShare for ClientCpuJobShare {
    async fn acquire_permit(&self, urgency: CpuJobUrgency) -> ClientCpuPermit {
        let held = self.slots.0[urgency as usize].acquire(self.client).await;
        ClientCpuPermit::new(held.other_permit_count(), held)
    }
}

/// Slots shared by all clients, with a limit per client.
pub(super) struct SharedSlotPool {
    all: Arc<Semaphore>,
    per_client: ClientPermitTable,
}

pub(super) struct SlotReservation {
    _of_all: OwnedSemaphorePermit,
    _of_client: ClientPermit,
}

impl SharedSlotPool {
    pub(super) fn new(all: usize, per_client: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(all)), per_client: ClientPermitTable::new(per_client) }
    }

    /// Reserves this many slots for `client` if they are free.
    pub(super) fn reserve_slots(&self, client: ClientIdentity, count: u32) -> Result<SlotReservation, RefusalCode> {
        let of_client = self.per_client.try_acquire_many(client, count).ok_or(RefusalCode::ClientOverQuota)?;
        let of_all = Arc::clone(&self.all).try_acquire_many_owned(count).map_err(|_| RefusalCode::Overloaded)?;
        Ok(SlotReservation { _of_all: of_all, _of_client: of_client })
    }
}

/// Limits on the bytes of request bodies in memory, in total and per client, so that clients that send slowly or send
/// much cost little. A body counts with the length that its head announces, or else with its route's maximum, from its
/// first byte until it has been judged.
pub(super) struct BodyMemoryLimits(SharedSlotPool);

impl BodyMemoryLimits {
    /// Bytes per permit. Small questions take one each, and a client has more permits than connections.
    const UNIT: usize = 16 * 1024;

    /// Maximum number of permits in use: 32 MiB. Parsing a body takes a few times its size.
    const MOST: usize = 2048;

    /// Maximum number of permits of one client: 8 MiB, which is 32 cards, 12 receipts, or 8 MCP messages, each of the
    /// maximum size.
    const MOST_OF_CLIENT: usize = 512;

    pub(super) fn new() -> Self {
        Self(SharedSlotPool::new(Self::MOST, Self::MOST_OF_CLIENT))
    }

    /// Reserves slots for a body from `client` of at most this many bytes.
    pub(super) fn reserve_body(&self, client: ClientIdentity, bytes: usize) -> Result<SlotReservation, RefusalCode> {
        let permits = u32::try_from(bytes.div_ceil(Self::UNIT)).unwrap_or(u32::MAX);
        let permits = if clresolve_core::mutant!("bodies-without-places") { 0 } else { permits };
        self.0.reserve_slots(client, permits)
    }

    /// Whether no body is in memory.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.all.available_permits() == Self::MOST
    }
}

/// A client's entry in the table. Dropping the last one of a client removes it from the table.
struct ClientPermitEntry {
    client: ClientIdentity,
    permits: Arc<Semaphore>,
    table: Arc<Mutex<HashMap<ClientIdentity, Arc<Semaphore>>>>,
}

impl Drop for ClientPermitEntry {
    fn drop(&mut self) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        // A permit holds the semaphore too, but is dropped before this. The two remaining references are the table's
        // and this one.
        if Arc::strong_count(&self.permits) == 2 {
            table.remove(&self.client);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::poll;

    use super::*;

    fn client(text: &str) -> ClientIdentity {
        ClientIdentity::from(text.parse::<IpAddr>().expect("an address"))
    }

    #[test]
    fn a_client_of_ipv6_is_its_network() {
        assert_eq!(client("2001:db8::1"), client("2001:db8::ffff:2"));
        assert_ne!(client("2001:db8::1"), client("2001:db8:0:1::1"));
        assert_eq!(client("::ffff:192.0.2.1"), client("192.0.2.1"));
        assert_ne!(client("192.0.2.1"), client("192.0.2.2"));
    }

    #[test]
    fn addresses_of_this_machine_are_one_client() {
        for local in ["127.0.0.2", "127.255.255.254", "::1", "::ffff:127.0.0.1", "::ffff:127.9.9.9"] {
            assert_eq!(client(local), client("127.0.0.1"), "{local}");
        }
        for other in ["126.255.255.255", "128.0.0.1", "::2", "::ffff:10.0.0.1", "2001:db8::1", "0.0.0.0"] {
            assert_ne!(client(other), client("127.0.0.1"), "{other}");
        }
    }

    #[test]
    fn bodies_are_bounded_in_all_and_for_each_client() {
        const BYTES: usize = 1 << 20;
        let limits = BodyMemoryLimits::new();
        let of = |number: usize| limits.reserve_body(client(&format!("192.0.2.{number}")), BYTES);
        let of_client = BodyMemoryLimits::MOST_OF_CLIENT * BodyMemoryLimits::UNIT / BYTES;
        let mut held: Vec<_> = (0..of_client).map(|_| of(1).expect("a permit")).collect();
        assert_eq!(of(1).err(), Some(RefusalCode::ClientOverQuota));
        let all = BodyMemoryLimits::MOST * BodyMemoryLimits::UNIT / BYTES;
        held.extend((of_client..all).map(|number| of(2 + number).expect("a permit")));
        assert_eq!(of(200).err(), Some(RefusalCode::Overloaded));
        held.pop();
        assert!(of(200).is_ok());
    }

    /// An address may send requests as each of these clients.
    #[test]
    fn address_with_requests_of_pages_leaves_permits_to_others() {
        let (all, of_client) = (32, 16);
        let limits = ClientPermitTable::new(of_client);
        let clients = [client("192.0.2.1"), ClientIdentity::PagesAtGate, ClientIdentity::OtherHostAtGate];
        let held: Vec<_> =
            clients.iter().flat_map(|client| (0..all).map_while(|_| limits.try_acquire(*client))).collect();
        assert_eq!(held.len(), 24);
        assert!(ClientPermitTable::new(1).try_acquire(ClientIdentity::PagesAtGate).is_some());
    }

    #[tokio::test]
    async fn a_client_takes_its_own_permits_only_and_is_forgotten_after_the_last() {
        let limits = ClientPermitTable::new(2);
        let (one, other) = (client("192.0.2.1"), client("192.0.2.2"));
        let (first, second) = (limits.try_acquire(one).expect("a permit"), limits.try_acquire(one).expect("a permit"));
        assert!(limits.try_acquire(one).is_none());
        assert_eq!((first.other_permit_count(), second.other_permit_count()), (1, 1));
        let others = limits.try_acquire(other).expect("a permit of its own");
        assert_eq!(others.other_permit_count(), 0);
        let mut waiting = Box::pin(limits.acquire(one));
        assert!(poll!(&mut waiting).is_pending());
        drop(first);
        let third = waiting.await;
        assert!(limits.try_acquire(one).is_none());
        let mut gave_up = Box::pin(limits.acquire(one));
        assert!(poll!(&mut gave_up).is_pending());
        drop((second, third));
        drop(gave_up);
        assert_eq!(limits.table.lock().expect("no panic").len(), 1);
        drop(others);
        assert!(limits.table.lock().expect("no panic").is_empty());
    }
}
