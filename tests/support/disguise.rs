//! Every way to write a URL of a forbidden address.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use clresolve_resolver::fetch::{AddressLookup, EgressViolation};

/// A port that foreign URLs may name and that needs no privileges.
pub(crate) const PORT: u16 = 8443;

/// A loopback address of this process alone, if the system has many: tests may run several times at once.
pub(crate) fn own_loopback() -> Ipv4Addr {
    if !cfg!(target_os = "linux") {
        return Ipv4Addr::LOCALHOST;
    }
    let [_, b, c, d] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, b | 0x40, c, d)
}

/// A resolver with the same answers for every name, which counts the look-ups.
pub(crate) struct Everywhere {
    answers: Vec<IpAddr>,
    asked: AtomicUsize,
}

impl Everywhere {
    pub(crate) fn leads_to(answers: &[IpAddr]) -> Arc<Self> {
        Arc::new(Self { answers: answers.to_vec(), asked: AtomicUsize::new(0) })
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl AddressLookup for Everywhere {
    async fn lookup(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Ok(self.answers.clone())
    }
}

/// Every way to carry an IPv4 address in an IPv6 one.
pub(crate) fn masks(ip: Ipv4Addr) -> [(&'static str, Ipv6Addr); 9] {
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

/// Every way to write a URL that leads to `ip` and `PORT`, or would with a careless parser, with the rule that refuses
/// it. Any name in it resolves to `ip`.
pub(crate) fn disguises(ip: Ipv4Addr) -> Vec<(String, EgressViolation)> {
    let [a, b, c, d] = ip.octets();
    let bits = ip.to_bits();
    let (low24, low16) = (bits & 0xff_ffff, bits & 0xffff);
    let fullwidth = |text: &str| -> String {
        let wide = |c: char| char::from_u32(c as u32 + 0xfee0).filter(|_| c.is_ascii_graphic()).unwrap_or(c);
        text.chars().map(wide).collect()
    };
    let mut table: Vec<(String, EgressViolation)> = [
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
    .map(|host| (format!("https://{host}:{PORT}/"), EgressViolation::IpLiteral))
    .collect();
    table.extend(masks(ip).map(|(_, mask)| (format!("https://[{mask}]:{PORT}/"), EgressViolation::IpLiteral)));

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
    table.extend(names.map(|name| (format!("https://{name}:{PORT}/"), EgressViolation::HostNotPublic)));

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
    table.extend(malformed.map(|url| (url, EgressViolation::NotUrl)));

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
    table.extend(disguised.map(|url| (url, EgressViolation::Disguised)));

    let user_info = [
        format!("https://a.example@{ip}:{PORT}/"),
        format!("https://{ip}@a.example:{PORT}/"),
        format!("https://a.example:{PORT}@{ip}:{PORT}/"),
        format!("https://:@{ip}@a.example:{PORT}/"),
        format!("https://user:password@a.example:{PORT}/"),
        format!("https://:password@a.example:{PORT}/"),
    ];
    table.extend(user_info.map(|url| (url, EgressViolation::UserInfo)));

    let schemes =
        ["http", "ftp", "ws", "wss", "gopher", "ipfs", "unix", "jar:https", "view-source:https", "HTTP", "httpss"];
    table.extend(schemes.map(|scheme| (format!("{scheme}://a.example:{PORT}/"), EgressViolation::Scheme)));
    table.extend(
        ["file:///etc/passwd", "data:text/plain,x", "javascript:alert(1)", "blob:https://a.example/x", "about:blank"]
            .map(|url| (url.to_owned(), EgressViolation::Scheme)),
    );

    let ports = [0, 1, 22, 25, 53, 80, 444, 2375, 5001, 6379, 8080, 8442, 8444, 8545, 9200, 11211, 65535];
    table.extend(ports.map(|port| (format!("https://a.example:{port}/"), EgressViolation::Port(port))));

    let led =
        ["a.example", "A.EXAMPLE.", "xn--bcher-kva.example", "bücher.example", "127.0.0.1.a.example", "a_b.example"];
    table.extend(led.map(|name| (format!("https://{name}:{PORT}/"), EgressViolation::AddressNotPublic(ip.into()))));
    table.push((format!("https://a.example:{PORT}/{}", "x".repeat(2048)), EgressViolation::TooLong(2048)));
    table
}
