//! The guard of the foreign door against every disguise of a forbidden address.
//!
//! A canary listens on a loopback address, at a port that foreign URLs may name. Every disguise of that address is
//! tried; nothing may ever connect. At the end the operator permits it, which shows that it was alive.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use alloy_primitives::address;
use alloy_provider::{CcipReadGateway, CcipReadRequest};
use async_trait::async_trait;
use clresolve::address::SPECIAL;
use clresolve::fetch::ccip::GuardedGateway;
use clresolve::fetch::{Cause, Egress, EgressConfig, FetchError, Lookup, Refusal};

use super::server::{Answer, Server, answer};
use super::{AMPLE, NAME, get, refusal, toward, unavailable};

/// A port that foreign URLs may name and that needs no privileges.
const PORT: u16 = 8443;

/// A loopback address of this process alone, where there are many: tests may run several times at once.
fn own_loopback() -> Ipv4Addr {
    if !cfg!(target_os = "linux") {
        return Ipv4Addr::LOCALHOST;
    }
    let [_, b, c, d] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, b | 0x40, c, d)
}

/// A resolver that has the same answers for every name, and counts the questions.
struct Everywhere {
    answers: Vec<IpAddr>,
    asked: AtomicUsize,
}

impl Everywhere {
    fn leads_to(answers: &[IpAddr]) -> Arc<Self> {
        Arc::new(Self { answers: answers.to_vec(), asked: AtomicUsize::new(0) })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Lookup for Everywhere {
    async fn lookup(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Ok(self.answers.clone())
    }
}

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
impl Lookup for Spelled {
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
                assert_eq!(refusal(error), (0, Refusal::AddressNotPublic(ip)), "{block}");
                tried += 1;
            }
        }
    }
    assert!(tried > 200, "{tried}");
}

/// Every way to carry an IPv4 address in an IPv6 one.
fn masks(ip: Ipv4Addr) -> [(&'static str, Ipv6Addr); 9] {
    let [a, b, c, d] = ip.octets().map(u16::from);
    let (high, low) = (a << 8 | b, c << 8 | d);
    [
        ("mapped", Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, high, low)),
        ("compatible", Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low)),
        ("translated (SIIT)", Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, high, low)),
        ("NAT64", Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low)),
        ("NAT64, local use", Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, high, low)),
        ("6to4", Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1)),
        ("Teredo", Ipv6Addr::new(0x2001, 0, high, low, 0, 0, 0, 0)),
        ("Teredo, the client's", Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, !high, !low)),
        ("ISATAP", Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0x5efe, high, low)),
    ]
}

/// Every way to write a URL that leads to `ip` and `PORT`, or would with a careless parser, and why it is refused.
/// Any name in it resolves to `ip`.
fn disguises(ip: Ipv4Addr) -> Vec<(String, Refusal)> {
    let [a, b, c, d] = ip.octets();
    let bits = ip.to_bits();
    let (low24, low16) = (bits & 0xff_ffff, bits & 0xffff);
    let fullwidth = |text: &str| -> String {
        let wide = |c: char| char::from_u32(c as u32 + 0xfee0).filter(|_| c.is_ascii_graphic()).unwrap_or(c);
        text.chars().map(wide).collect()
    };
    let mut table: Vec<(String, Refusal)> = [
        // IPv4 in every notation
        format!("{ip}"),
        format!("{ip}."),
        format!("{bits}"),
        format!("{bits:#x}"),
        format!("{bits:#X}"),
        format!("0{bits:o}"),
        format!("0x{a:x}.{low24}"),
        format!("{a}.{b}.{low16}"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("000{a:o}.{b}.{c}.{d}"),
        format!("0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}"),
        format!("0x0000{a:x}.{b}.0{c:o}.{d}"),
        fullwidth(&ip.to_string()),
        format!("{a}。{b}．{c}｡{d}"),
        ip.to_string().replace('.', "%2e"),
        format!("%3{}{}", a / 100, &format!("{ip}")[1..]),
        "0".to_owned(),
        "0x7f.1".to_owned(),
        "127.1".to_owned(),
        // IPv6
        "[::1]".to_owned(),
        "[0:0:0:0:0:0:0:1]".to_owned(),
        "[::]".to_owned(),
        format!("[::ffff:{ip}]"),
        format!("[::FFFF:{:x}:{:x}]", bits >> 16, low16),
        "[fd00::1]".to_owned(),
        "[2606:4700:4700::1111]".to_owned(),
        "8.8.8.8".to_owned(),
    ]
    .into_iter()
    .map(|host| (format!("https://{host}:{PORT}/"), Refusal::IpLiteral))
    .collect();
    table.extend(masks(ip).map(|(_, mask)| (format!("https://[{mask}]:{PORT}/"), Refusal::IpLiteral)));

    let names = [
        "localhost",
        "localhost.",
        "LOCALHOST",
        "ｌｏｃａｌｈｏｓｔ",
        "%6c%6f%63%61%6c%68%6f%73%74",
        "loc\u{ad}alhost",
        "a.localhost",
        "a.localhost.",
        "localhost.localdomain",
        "printer.local",
        "metadata.google.internal",
        "instance-data",
        "intranet",
        "router.home.arpa",
        "nas.lan",
        "box.home",
        "a.corp",
        "a.private",
        "abcdefghij.onion",
        "a.test",
        "a.invalid",
        "a.alt",
        "a.INTERNAL.",
        "a。internal",
    ];
    table.extend(names.map(|name| (format!("https://{name}:{PORT}/"), Refusal::HostNotPublic)));

    let malformed = [
        format!("https://[fe80::1%25lo]:{PORT}/"),
        format!("https://[fe80::1%lo]:{PORT}/"),
        format!("https://[::ffff:{ip}:{PORT}/"),
        format!("https://[{ip}]:{PORT}/"),
        format!("https://{ip}.1:{PORT}/"),
        format!("https://{a}.{b}.{c}.999:{PORT}/"),
        format!("https://{}:{PORT}/", 1_u64 << 33),
        format!("https://a..example:{PORT}/"),
        format!("https://.example:{PORT}/"),
        format!("https://a.example..:{PORT}/"),
        format!("https://{}.example:{PORT}/", "a".repeat(64)),
        format!("https://{}example:{PORT}/", "a.".repeat(130)),
        format!("https://a%00.example:{PORT}/"),
        format!("https://a%2fb.example:{PORT}/"),
        format!("https://xn--a.example:{PORT}/"),
        "https://a.example:99999/".to_owned(),
        "https://a.example:port/".to_owned(),
        "https://".to_owned(),
        "https://:8443/".to_owned(),
        "https://?x".to_owned(),
        "a.example/card.json".to_owned(),
        "//a.example/card.json".to_owned(),
        "/card.json".to_owned(),
        String::new(),
    ];
    table.extend(malformed.map(|url| (url, Refusal::NotUrl)));

    let disguised = [
        format!("https:\\\\{ip}:{PORT}\\"),
        format!("https:/\\{ip}:{PORT}/"),
        format!("https://a.example:{PORT}\\@{ip}:{PORT}/"),
        format!("https://a.example:{PORT}/\\"),
        format!("https:{ip}:{PORT}/"),
        format!("https:/{ip}:{PORT}/"),
        format!("https:///{ip}:{PORT}/"),
        format!("https:a.example:{PORT}/"),
        format!("\thttps://a.example:{PORT}/"),
        format!("ht\ttps://a.example:{PORT}/"),
        format!("https://a.exa\nmple:{PORT}/"),
        format!("https://a.example\r\n:{PORT}/"),
        format!("https://a.example:{PORT}/ HTTP/1.1\r\nHost: {ip}\r\n\r\n"),
        format!(" https://a.example:{PORT}/"),
        format!("https://a.example:{PORT}/ "),
        format!("https://a.example :{PORT}/"),
        format!("https://a.example:{PORT}/\0"),
        format!("https://a.example:{PORT}/\u{2028}"),
    ];
    table.extend(disguised.map(|url| (url, Refusal::Disguised)));

    let user_info = [
        format!("https://a.example@{ip}:{PORT}/"),
        format!("https://{ip}@a.example:{PORT}/"),
        format!("https://a.example:{PORT}@{ip}:{PORT}/"),
        format!("https://:@{ip}@a.example:{PORT}/"),
        format!("https://user:password@a.example:{PORT}/"),
        format!("https://:password@a.example:{PORT}/"),
    ];
    table.extend(user_info.map(|url| (url, Refusal::UserInfo)));

    let schemes =
        ["http", "ftp", "ws", "wss", "gopher", "ipfs", "unix", "jar:https", "view-source:https", "HTTP", "httpss"];
    table.extend(schemes.map(|scheme| (format!("{scheme}://a.example:{PORT}/"), Refusal::Scheme)));
    table.extend(
        ["file:///etc/passwd", "data:text/plain,x", "javascript:alert(1)", "blob:https://a.example/x", "about:blank"]
            .map(|url| (url.to_owned(), Refusal::Scheme)),
    );

    let ports = [0, 1, 22, 25, 53, 80, 444, 2375, 5001, 6379, 8080, 8442, 8444, 8545, 9200, 11211, 65535];
    table.extend(ports.map(|port| (format!("https://a.example:{port}/"), Refusal::Port(port))));

    let led =
        ["a.example", "A.EXAMPLE.", "xn--bcher-kva.example", "bücher.example", "127.0.0.1.a.example", "a_b.example"];
    table.extend(led.map(|name| (format!("https://{name}:{PORT}/"), Refusal::AddressNotPublic(ip.into()))));
    table.push((format!("https://a.example:{PORT}/{}", "x".repeat(2048)), Refusal::TooLong(2048)));
    table
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
        let asked = usize::from(matches!(why, Refusal::AddressNotPublic(_)));
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
async fn redirects_never_reach(canary: &Server, table: &[(String, Refusal)]) {
    let ip = canary.address.ip();
    let relative = [
        (format!("//{ip}:{PORT}/"), Refusal::IpLiteral),
        (format!("//a.internal:{PORT}/"), Refusal::HostNotPublic),
        (format!("//a.example:{PORT}/"), Refusal::AddressNotPublic(ip)),
        (format!("///{ip}:{PORT}/"), Refusal::Disguised),
        (format!("/\\{ip}:{PORT}/"), Refusal::Disguised),
        (format!("https:{ip}:{PORT}/"), Refusal::Disguised),
        (format!("http://{ip}:{PORT}/"), Refusal::Scheme),
    ];
    let is_header = |url: &str| !url.is_empty() && url.bytes().all(|b| (0x21..0x7f).contains(&b));
    let absolute = table.iter().filter(|(url, why)| is_header(url) && *why != Refusal::NotUrl).cloned();
    let places: Vec<_> = relative.into_iter().chain(absolute).collect();
    let codes = ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"];
    for (index, (place, why)) in places.iter().enumerate() {
        let error = redirected(canary, codes[index % codes.len()], place).await;
        assert_eq!(refusal(error), (1, why.clone()), "{place}");
    }
    let place = &places[0].0;
    for code in codes {
        assert_eq!(refusal(redirected(canary, code, place).await), (1, Refusal::IpLiteral), "{code}");
    }
    for (line, code) in [("300 Choices", 300), ("304 Not Modified", 304), ("305 Use Proxy", 305), ("306 X", 306)] {
        assert_eq!(redirected(canary, line, place).await, unavailable(Cause::Status(code)), "{line}");
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
        assert_eq!(refusal(error), (0, Refusal::AddressNotPublic(ip.into())));
    }
    let many: Vec<IpAddr> = std::iter::repeat_n(good[0], 100).chain([ip.into()]).collect();
    let egress = Egress::with_lookup(EgressConfig::default(), Everywhere::leads_to(&many)).unwrap();
    let error = get(&egress, &format!("https://a.example:{PORT}/")).await.unwrap_err();
    assert_eq!(refusal(error), (0, Refusal::AddressNotPublic(ip.into())), "those that are not used are judged too");
}

/// Templates of CCIP-Read URLs are judged after they are filled in, wherever the placeholders stand.
async fn contracts_never_reach(ip: Ipv4Addr, egress: &Egress) {
    let literal = "the host is an IP literal";
    let not_url = "not a URL with a host";
    let written = "the URL is written so that it is read differently from what it shows";
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
    let gateway = GuardedGateway::new(egress.clone(), AMPLE);
    for (template, why) in table {
        let request = CcipReadRequest {
            sender: address!("0x00000000000000000000000000000000000000Aa"),
            urls: vec![template.clone()],
            data: ip.octets().into(),
        };
        let error = gateway.request(&request, 100).await.unwrap_err();
        assert!(error.message.ends_with(why), "{template}: {}", error.message);
    }
}
