//! Limits per client: each has as many places as any other, and takes none of theirs.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Who asks, as far as limits per client go: an address, or the first 64 bits of one of IPv6, which one customer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Client(pub(super) IpAddr);

impl From<IpAddr> for Client {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(six) => Ipv6Addr::from_bits(six.to_bits() >> 64 << 64).into(),
            four @ IpAddr::V4(_) => four,
        })
    }
}

/// Places for each client. A client is known here only while it holds a place or waits for one, so that the overall
/// limit on what needs a place bounds the table too.
pub(super) struct Shares {
    places: usize,
    table: Arc<Mutex<HashMap<Client, Arc<Semaphore>>>>,
}

/// A place that a client holds.
pub(super) struct Share {
    _place: OwnedSemaphorePermit,
    _known: Known,
}

impl Shares {
    pub(super) fn new(places: usize) -> Self {
        Self { places, table: Arc::default() }
    }

    /// A place for `client`, if it has one left.
    pub(super) fn take(&self, client: Client) -> Option<Share> {
        let known = self.know(client);
        let place = Arc::clone(&known.places).try_acquire_owned().ok()?;
        Some(Share { _place: place, _known: known })
    }

    /// A place for `client`, once it has one left.
    pub(super) async fn wait(&self, client: Client) -> Share {
        let known = self.know(client);
        let place = Arc::clone(&known.places).acquire_owned().await.expect("the places are never closed");
        Share { _place: place, _known: known }
    }

    fn know(&self, client: Client) -> Known {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let places = table.entry(client).or_insert_with(|| Arc::new(Semaphore::new(self.places)));
        Known { client, places: Arc::clone(places), table: Arc::clone(&self.table) }
    }
}

/// A client in the table; the last one of a client takes it out.
struct Known {
    client: Client,
    places: Arc<Semaphore>,
    table: Arc<Mutex<HashMap<Client, Arc<Semaphore>>>>,
}

impl Drop for Known {
    fn drop(&mut self) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        // Permits hold the semaphore too, and go before this does: left are the table's and this one.
        if Arc::strong_count(&self.places) == 2 {
            table.remove(&self.client);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::poll;

    use super::*;

    fn client(text: &str) -> Client {
        Client::from(text.parse::<IpAddr>().expect("an address"))
    }

    #[test]
    fn a_client_of_ipv6_is_its_network() {
        assert_eq!(client("2001:db8::1"), client("2001:db8::ffff:2"));
        assert_ne!(client("2001:db8::1"), client("2001:db8:0:1::1"));
        assert_eq!(client("::ffff:192.0.2.1"), client("192.0.2.1"));
        assert_ne!(client("192.0.2.1"), client("192.0.2.2"));
    }

    #[tokio::test]
    async fn a_client_takes_its_own_places_only_and_is_forgotten_after_the_last() {
        let shares = Shares::new(2);
        let (one, other) = (client("192.0.2.1"), client("192.0.2.2"));
        let (first, second) = (shares.take(one).expect("a place"), shares.take(one).expect("a place"));
        assert!(shares.take(one).is_none());
        let others = shares.take(other).expect("a place of its own");
        let mut waiting = Box::pin(shares.wait(one));
        assert!(poll!(&mut waiting).is_pending());
        drop(first);
        let third = waiting.await;
        assert!(shares.take(one).is_none());
        let mut gave_up = Box::pin(shares.wait(one));
        assert!(poll!(&mut gave_up).is_pending());
        drop((second, third));
        drop(gave_up);
        assert_eq!(shares.table.lock().expect("no panic").len(), 1);
        drop(others);
        assert!(shares.table.lock().expect("no panic").is_empty());
    }
}
