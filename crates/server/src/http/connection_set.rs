//! The connections of one listener. It limits their total and their number per client, and selects the connection to
//! evict when the total is reached.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clresolve_resolver::config::HttpServerConfig;
use clresolve_resolver::telemetry;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::activity::ConnectionActivity;
use super::client_limits::{ClientIdentity, ClientPermit, ClientPermitTable};

/// How long a newcomer waits before it looks again for a connection to evict. In the meantime a connection that was
/// asked to close may have ended, or a busy one may have become idle.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

pub(super) struct BoundedConnectionSet {
    slots: Arc<Semaphore>,
    per_client: ClientPermitTable,
    open: Arc<Mutex<OpenConnectionTable>>,
}

/// A connection in the set. Dropping this removes it from the set.
pub(super) struct ConnectionSetMember {
    pub(super) activity: Arc<ConnectionActivity>,
    number: u64,
    open: Arc<Mutex<OpenConnectionTable>>,
    _slot: OwnedSemaphorePermit,
    _of_client: ClientPermit,
}

#[derive(Default)]
struct OpenConnectionTable {
    next: u64,
    members: HashMap<u64, (ClientIdentity, Arc<ConnectionActivity>)>,
}

impl BoundedConnectionSet {
    pub(super) fn new(limits: &HttpServerConfig) -> Self {
        Self {
            slots: Arc::new(Semaphore::new(limits.connections)),
            per_client: ClientPermitTable::new(limits.connections_per_client),
            open: Arc::default(),
        }
    }

    /// Adds a connection of `client` once there is room for it. Returns `None` if the client has reached its limit.
    pub(super) async fn admit_connection(&self, client: ClientIdentity) -> Option<ConnectionSetMember> {
        let of_client = self.per_client.try_acquire(client)?;
        let slot = self.acquire_slot().await;
        let activity = Arc::new(ConnectionActivity::new());
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let number = open.next;
        open.next += 1;
        open.members.insert(number, (client, Arc::clone(&activity)));
        Some(ConnectionSetMember { activity, number, open: Arc::clone(&self.open), _slot: slot, _of_client: of_client })
    }

    async fn acquire_slot(&self) -> OwnedSemaphorePermit {
        loop {
            if let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() {
                return slot;
            }
            self.open.lock().unwrap_or_else(PoisonError::into_inner).evict_connection();
            if let Ok(slot) = timeout(LOOK_AGAIN, Arc::clone(&self.slots).acquire_owned()).await {
                return slot.expect("the slots are never closed");
            }
        }
    }
}

impl OpenConnectionTable {
    /// Asks one connection to close.
    ///
    /// Connections that wait for their client are evicted first, and among them those that are not spared. Within that
    /// group the client with the most connections loses the one that has waited longest. If no connection is waiting,
    /// the one of the client with the most connections whose request started last closes after its response. Otherwise
    /// clients that pipeline requests back to back could occupy all connections.
    fn evict_connection(&self) {
        let mut sizes: HashMap<ClientIdentity, usize> = HashMap::new();
        for (client, _) in self.members.values() {
            *sizes.entry(*client).or_default() += 1;
        }
        let fit = |(client, activity): &(ClientIdentity, Arc<ConnectionActivity>)| {
            let waiting = activity.eviction_rank()?;
            let size = sizes.get(client).copied().filter(|_| !clresolve_core::mutant!("large-clients-are-spared"));
            Some(((waiting.is_spared, Reverse(size), waiting.since), Arc::clone(activity)))
        };
        let waiting = self.members.values().filter_map(fit).min_by_key(|(order, _)| *order).map(|(_, first)| first);
        let in_work = |(client, activity): &(ClientIdentity, Arc<ConnectionActivity>)| {
            Some(((sizes.get(client).copied(), activity.evictable_request_start()?), Arc::clone(activity)))
        };
        let busy = || self.members.values().filter_map(in_work).max_by_key(|(order, _)| *order).map(|(_, last)| last);
        if let Some(chosen) = waiting.or_else(|| busy().filter(|_| !clresolve_core::mutant!("busy-connections-stay"))) {
            chosen.request_close();
            telemetry::count_displaced_connection();
        }
    }
}

impl Drop for ConnectionSetMember {
    fn drop(&mut self) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).members.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn client(last: u8) -> ClientIdentity {
        ClientIdentity::Address(std::net::Ipv4Addr::new(192, 0, 2, last).into())
    }

    fn set(connections: usize, per_client: usize) -> BoundedConnectionSet {
        let mut limits = HttpServerConfig::default();
        (limits.connections, limits.connections_per_client) = (connections, per_client);
        BoundedConnectionSet::new(&limits)
    }

    async fn member(set: &BoundedConnectionSet, of: u8) -> ConnectionSetMember {
        set.admit_connection(client(of)).await.expect("the client may have more")
    }

    /// Returns the index of the member that is asked to close.
    fn told<const N: usize>(set: &BoundedConnectionSet, members: [&ConnectionSetMember; N]) -> Option<usize> {
        set.open.lock().expect("no panic").evict_connection();
        members.iter().position(|member| is_told(member))
    }

    /// Whether the member was asked to close, at once or after the response in progress.
    fn is_told(member: &ConnectionSetMember) -> bool {
        let was_told = member.activity.closes_after_response();
        let at_once = member.activity.wait_for_close_request().now_or_never().is_some();
        at_once || member.activity.closes_after_response() != was_told
    }

    #[tokio::test]
    async fn the_oldest_idle_connection_of_the_largest_client_goes_first_and_the_gates_last() {
        let set = set(5, 4);
        let small = member(&set, 1).await;
        let [gate, first, second] = [member(&set, 2).await, member(&set, 2).await, member(&set, 2).await];
        gate.activity.begin_request(true);
        assert_eq!(told(&set, [&small, &gate, &first, &second]), Some(2), "the gate's is in work");
        assert_eq!(told(&set, [&small, &gate, &first, &second]), Some(3), "none is told twice");
        assert_eq!(told(&set, [&small, &gate, &first, &second]), Some(0));
        assert_eq!(told(&set, [&small, &gate, &first, &second]), Some(1), "its answer is the last");
        assert_eq!(told(&set, [&small, &gate, &first, &second]), None, "nothing is left to be told");
    }

    #[tokio::test]
    async fn what_last_asked_the_gate_goes_after_all_others() {
        let set = set(3, 3);
        let [gate, small] = [member(&set, 1).await, member(&set, 2).await];
        let other_gate = member(&set, 1).await;
        for asked in [&gate, &other_gate] {
            asked.activity.begin_request(true);
            asked.activity.end_request();
        }
        small.activity.begin_request(false);
        small.activity.end_request();
        let members = [&gate, &small, &other_gate];
        assert_eq!([told(&set, members), told(&set, members)], [Some(1), Some(0)]);
    }

    /// Otherwise a client that keeps reconnecting would evict each newcomer, however many connections others hold.
    #[tokio::test]
    async fn what_has_just_come_is_not_pushed_out_before_the_idle_ones_of_a_large_client() {
        let set = set(3, 3);
        let [held, other, newcomer] = [member(&set, 1).await, member(&set, 1).await, member(&set, 2).await];
        for idle in [&held, &other] {
            idle.activity.begin_request(true);
            idle.activity.end_request();
        }
        assert_eq!(told(&set, [&held, &other, &newcomer]), Some(0));
    }

    #[tokio::test]
    async fn who_has_as_many_as_it_may_pushes_nobody_out() {
        let set = set(2, 1);
        let [one, other] = [member(&set, 1).await, member(&set, 2).await];
        assert!(set.admit_connection(client(1)).await.is_none());
        assert_eq!([&one, &other].map(|held| held.activity.eviction_rank().is_some()), [true, true]);
        assert!(set.admit_connection(client(3)).now_or_never().is_none(), "nobody has made room yet");
        assert!(is_told(&one));
        drop(one);
        assert!(set.admit_connection(client(3)).now_or_never().is_some_and(|taken| taken.is_some()));
    }
}
