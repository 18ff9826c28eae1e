//! Tests of the daemon without a listener, and of its listeners.

mod judging;

use super::*;

#[tokio::test]
async fn an_address_in_use_says_what_to_change() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = ListenAddress::Tcp(taken.local_addr().unwrap());
    for (key, says) in [("http.listen", "with --listen or this key"), ("gate.listen", "with this key")] {
        let error = bind_listener(key, &address).await.err().expect("it is taken").to_string();
        assert!(error.contains(key) && error.contains(says), "{error}");
    }
}
