//! `probe` asks sellers by the rules for foreign URLs, also where the operator names the route, and follows
//! nothing.

use std::net::SocketAddr;

use clresolve_resolver::config::Config;
use clresolve_resolver::resolve::Resolver;
use clresolve_resolver::sandbox::CustomSandbox;
use serde_json::{Value, json};

use super::{NAME, world_with_seller};
use crate::support::disguise::{Everywhere, PORT, own_loopback};
use crate::support::program::clresolve;
use crate::support::server::{Answer, Server, answer};

/// Sellers on public hosts of their own.
const SELLER: &str = "seller.example";
const OTHER: &str = "other.example";

/// The world's configuration, where the agent is called at `route`.
fn routed(world: &CustomSandbox, route: &str) -> Config {
    let mut config = world.config();
    config.routes = [(NAME.to_owned(), route.to_owned())].into();
    config
}

/// What the program answers and ends with.
async fn probed(config: &Config) -> (Option<i32>, Value) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("clresolve.toml");
    config.save(&file).expect("the folder can be written");
    let file = file.display().to_string();
    let probe = move || clresolve(&["probe", "--config", &file, NAME, "summarize", "--json"], "");
    let output = tokio::task::spawn_blocking(probe).await.expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}")))
}

/// Nobody was asked, so nothing is demanded and nothing is paid.
#[track_caller]
fn assert_unasked(what: &str, (exit, answer): &(Option<i32>, Value)) {
    assert_eq!(*exit, Some(3), "{what}: {answer:#}");
    assert_eq!((&answer["terms"], &answer["decision"]["abort"]), (&json!(null), &json!(true)), "{what}: {answer:#}");
    assert_eq!(answer["decision"]["codes"], json!(["invoke-no-route"]), "{what}: {answer:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_to_a_private_address_is_not_asked() {
    let ip = own_loopback();
    let canary = Server::slamming(SocketAddr::new(ip.into(), PORT)).await;
    let url = format!("https://{ip}:{PORT}/summarize");
    let of_record = world_with_seller(&format!(
        "records.\"agent-endpoint[web]\" = \"{url}\"\nrecords.\"cl.endpoint.runtime\" = \"\"\n"
    ))
    .await;
    assert_unasked("the record", &probed(&of_record.config()).await);
    let world = world_with_seller("").await;
    for url in
        [url, format!("http://{ip}:{PORT}/summarize"), "https://[::1]/".to_owned(), "https://localhost/".to_owned()]
    {
        assert_unasked(&url, &probed(&routed(&world, &url)).await);
    }
    let dns = Everywhere::leads_to(&[ip.into()]);
    let resolver = Resolver::with_lookup(&world.config(), dns.clone()).await.expect("its configuration is good");
    let refused = resolver.send_unpaid_request(&format!("https://{SELLER}:{PORT}/"), Some("{}")).await;
    assert!(refused.is_err(), "a name of a private address");
    assert_eq!((dns.asked(), canary.connections()), (1, 0));
}

/// A seller that redirects is asked once, and its redirect is its whole answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_of_a_probe_is_not_followed() {
    let canary = Server::slamming(SocketAddr::new(own_loopback().into(), 0)).await;
    let other = Server::tls(&[OTHER], |_| Answer::Whole(answer("402 Payment Required", "", b"{}"))).await;
    let world = world_with_seller("").await;
    for (status, target) in [(301, 0), (302, 1), (303, 1), (307, 0), (307, 1), (308, 1)] {
        let target = [format!("https://{}/", canary.address), format!("https://{OTHER}/")][target].clone();
        let headers = format!("Location: {target}\r\nRefresh: 0; url={target}\r\n");
        let moved = move |_: &str| Answer::Whole(answer(&format!("{status} Moved"), &headers, b"{}"));
        let seller = Server::tls(&[SELLER], moved).await;
        let mut config = routed(&world, &format!("https://{SELLER}/summarize"));
        for (server, host) in [(&seller, SELLER), (&other, OTHER)] {
            config.network.connect_to.push(server.detour(&format!("{host}:443")).parse().expect("a detour"));
            config.network.ca_pems.push(String::from_utf8(server.root.to_vec()).expect("PEM"));
        }
        let (exit, answer) = probed(&config).await;
        assert_eq!((exit, &answer["terms"]), (Some(1), &json!(null)), "{status} {target}: {answer:#}");
        assert_eq!(answer["decision"]["codes"], json!(["payment-terms-malformed"]), "{status} {target}: {answer:#}");
        assert_eq!((seller.connections(), other.connections(), canary.connections()), (1, 0, 0), "{status} {target}");
    }
}
