//! The guard of the foreign class against every disguise of a forbidden address.
//!
//! A canary listens on a loopback address, at a port that foreign URLs may name. Every disguise of that address is
//! tried; nothing may ever connect. At the end the operator permits it, which shows that it was alive.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use alloy_primitives::address;
use async_trait::async_trait;
use clresolve_chain::ccip::{CcipReadGatewayClient, CcipReadRequest};
use clresolve_core::address::SPECIAL;
use clresolve_resolver::fetch::ccip::GuardedCcipReadGatewayClient;
use clresolve_resolver::fetch::{
    AddressLookup, Egress, EgressConfig, EgressViolation, FetchError, SourceUnavailableError,
};

use super::{AMPLE, NAME, get, refusal, toward, unavailable};
use crate::support::disguise::{Everywhere, PORT, disguises, masks, own_loopback};
use crate::support::server::{Answer, Server, answer};

/// A resolver that reads the address out of the name: `a-HEX.example`.
struct Spelled;

impl Spelled {
    fn name(ip: IpAddr) -> String {
        match ip {
            IpAddr::V4(ip) => format!("a-{:08x}.example", ip.to_bits()),
            IpAddr::V6(ip) => format!("a-{:032x}.example", ip.to_bits()),
        }
    }
}

#[async_trait]
impl AddressLookup for Spelled {
    async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let digits = host.strip_prefix("a-").and_then(|rest| rest.strip_suffix(".example")).unwrap();
        let bits = u128::from_str_radix(digits, 16).unwrap();
        Ok(vec![match u32::try_from(bits) {
            Ok(bits) if digits.len() == 8 => Ipv4Addr::from_bits(bits).into(),
            _ => Ipv6Addr::from_bits(bits).into(),
        }])
    }
}

/// The table that drives the guard, walked from outside: no name may lead to the first or last address of a block, nor
/// to an IPv4 one behind an IPv6 mask.
#[tokio::test]
async fn no_name_leads_into_a_special_block() {
    let egress = Egress::with_lookup(EgressConfig::default(), Arc::new(Spelled)).unwrap();
    let mut tried = 0;
    for block in SPECIAL {
        for ip in [block.first(), block.last()] {
            let mut disguises = vec![ip];
            if let IpAddr::V4(ip) = ip {
                disguises.extend(masks(ip).into_iter().map(|(_, mask)| IpAddr::from(mask)));
            }
            for ip in disguises {
                let error = get(&egress, &format!("https://{}/", Spelled::name(ip))).await.unwrap_err();
                assert_eq!(refusal(error), (0, EgressViolation::AddressNotPublic(ip)), "{block}");
                tried += 1;
            }
        }
    }
    assert!(tried > 200, "{tried}");
}

#[tokio::test]
async fn no_disguise_reaches_the_canary() {
    let ip = own_loopback();
    let canary = Server::slamming(SocketAddr::new(ip.into(), PORT)).await;
    let lookup = Everywhere::leads_to(&[ip.into()]);
    let egress = Egress::with_lookup(EgressConfig::default(), lookup.clone()).unwrap();
    let table = disguises(ip);
    for (url, why) in &table {
        let before = lookup.asked();
        let error = get(&egress, url).await.unwrap_err();
        assert_eq!(refusal(error), (0, why.clone()), "{url:?}");
        let asked = usize::from(matches!(why, EgressViolation::AddressNotPublic(_)));
        assert_eq!(lookup.asked() - before, asked, "{url:?}: one look-up, and none where the URL is refused");
    }
    assert!(table.len() > 130, "{}", table.len());

    redirects_never_reach(&canary, &table).await;
    names_with_mixed_answers_never_reach(ip).await;
    contracts_never_reach(ip, &egress).await;
    assert_eq!(canary.connections(), 0, "a forbidden address was connected to");

    let allow_host = vec![format!("a.example:{PORT}").parse().unwrap()];
    let permitted = EgressConfig { allow_host, ..EgressConfig::default() };
    let egress = Egress::with_lookup(permitted, lookup).unwrap();
    let error = get(&egress, &format!("https://a.example:{PORT}/")).await.unwrap_err();
    assert!(matches!(error, FetchError::Unavailable(_)), "{error:?}");
    assert_eq!(canary.connections(), 1, "the canary is alive");
}

/// Sends a public host's client to each forbidden place, with every code of a redirect.
async fn redirects_never_reach(canary: &Server, table: &[(String, EgressViolation)]) {
    let ip = canary.address.ip();
    let relative = [
        (format!("//{ip}:{PORT}/"), EgressViolation::IpLiteral),
        (format!("//a.internal:{PORT}/"), EgressViolation::HostNotPublic),
        (format!("//a.example:{PORT}/"), EgressViolation::AddressNotPublic(ip)),
        (format!("///{ip}:{PORT}/"), EgressViolation::Disguised),
        (format!("/\\{ip}:{PORT}/"), EgressViolation::Disguised),
        (format!("https:{ip}:{PORT}/"), EgressViolation::Disguised),
        (format!("http://{ip}:{PORT}/"), EgressViolation::Scheme),
    ];
    let is_header = |url: &str| !url.is_empty() && url.bytes().all(|b| (0x21..0x7f).contains(&b));
    let absolute = table.iter().filter(|(url, why)| is_header(url) && *why != EgressViolation::NotUrl).cloned();
    let places: Vec<_> = relative.into_iter().chain(absolute).collect();
    let codes = ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"];
    for (index, (place, why)) in places.iter().enumerate() {
        let error = redirected(canary, codes[index % codes.len()], place).await;
        assert_eq!(refusal(error), (1, why.clone()), "{place}");
    }
    let place = &places[0].0;
    for code in codes {
        assert_eq!(refusal(redirected(canary, code, place).await), (1, EgressViolation::IpLiteral), "{code}");
    }
    for (line, code) in [("300 Choices", 300), ("304 Not Modified", 304), ("305 Use Proxy", 305), ("306 X", 306)] {
        assert_eq!(redirected(canary, line, place).await, unavailable(SourceUnavailableError::Status(code)), "{line}");
    }
}

async fn redirected(canary: &Server, code: &'static str, place: &str) -> FetchError {
    let headers = format!("Location: {place}\r\nRefresh: 0; url={place}\r\n");
    let body = if code.starts_with("304") { "" } else { "<html>a body" };
    let server = Server::tls(&[NAME], move |_| Answer::Whole(answer(code, &headers, body.as_bytes()))).await;
    let egress = Egress::with_lookup(toward(&server), Everywhere::leads_to(&[canary.address.ip()])).unwrap();
    let error = get(&egress, "https://cards.example/").await.unwrap_err();
    assert_eq!(server.connections(), 1);
    error
}

/// One bad answer among good ones refuses the name, wherever it stands.
async fn names_with_mixed_answers_never_reach(ip: Ipv4Addr) {
    let good: [IpAddr; 2] = ["8.8.8.8".parse().unwrap(), "2606:4700:4700::1111".parse().unwrap()];
    for place in 0..=good.len() {
        let mut answers = good.to_vec();
        answers.insert(place, ip.into());
        let egress = Egress::with_lookup(EgressConfig::default(), Everywhere::leads_to(&answers)).unwrap();
        let error = get(&egress, &format!("https://a.example:{PORT}/")).await.unwrap_err();
        assert_eq!(refusal(error), (0, EgressViolation::AddressNotPublic(ip.into())));
    }
    let many: Vec<IpAddr> = std::iter::repeat_n(good[0], 100).chain([ip.into()]).collect();
    let egress = Egress::with_lookup(EgressConfig::default(), Everywhere::leads_to(&many)).unwrap();
    let error = get(&egress, &format!("https://a.example:{PORT}/")).await.unwrap_err();
    assert_eq!(
        refusal(error),
        (0, EgressViolation::AddressNotPublic(ip.into())),
        "those that are not used are judged too"
    );
}

/// Templates of CCIP-Read URLs are judged after they are filled in, wherever the placeholders stand.
async fn contracts_never_reach(ip: Ipv4Addr, egress: &Egress) {
    let literal = "the host is an IP literal";
    let not_url = "not a URL with a host";
    let written = "the URL is written so that parsers read it differently from its text";
    let led = format!("the address {ip} is not public");
    let table = [
        (format!("https://{ip}:{PORT}/{{sender}}/{{data}}"), literal),
        (format!("https://{{data}}:{PORT}/"), literal),
        ("https://{data}./{sender}".to_owned(), literal),
        // The sender is a small number, and a host that is a number is an IPv4 address.
        (format!("https://{{sender}}:{PORT}/"), literal),
        ("https://127.{data}/".to_owned(), not_url),
        ("https://a.example:{data}/".to_owned(), not_url),
        ("https://{sender}.localhost/".to_owned(), "the host name is not public"),
        ("https://{sender}@a.example/".to_owned(), "the URL has user info"),
        ("{data}://a.example/".to_owned(), not_url),
        (format!("http://a.example:{PORT}/{{sender}}"), "the scheme is not allowed"),
        (format!("https:\\\\{ip}:{PORT}\\{{sender}}"), written),
        (format!("https://a.example:{PORT}/{{sender}}\n"), written),
        (format!("https:{{sender}}.example:{PORT}/"), written),
        ("https://a.example:8545/{sender}".to_owned(), "the port 8545 is not allowed"),
        (format!("https://{{sender}}.example:{PORT}/"), &led),
        (format!("https://a.example:{PORT}/{{sender}}/{{data}}.json"), &led),
    ];
    let gateway = GuardedCcipReadGatewayClient::new(egress.clone(), AMPLE);
    for (template, why) in table {
        let request = CcipReadRequest {
            sender: address!("0x00000000000000000000000000000000000000Aa"),
            urls: vec![template.clone()],
            data: ip.octets().into(),
        };
        let error = gateway.request_first_response(&request, 100).await.unwrap_err();
        assert!(error.message.ends_with(why), "{template}: {}", error.message);
    }
}
