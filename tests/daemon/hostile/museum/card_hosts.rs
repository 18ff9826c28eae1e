//! How the web hosts of Agent-Cards answer, as data.

use bytes::Bytes;

use super::exhibit::{Exhibit, page, redirected, short_of_its_length, silent, whole, without_last_chunk};
use crate::support::server::{Answer, gzip};

/// The beginning of the page.
pub(super) const HEADING: &str = "\
# Card hosts

Behaviour that has been reported for web hosts and CDNs, by the verdict on an otherwise trusted agent if no IPFS gateway
has the card, and if one has it. clresolve never trusts the host: the card's bytes must match the name's records.
`HTTP status` causes are not repeated.
";

pub(super) const COLUMNS: [&str; 3] = ["answer", "observed at", "cause"];

pub(super) const NAME: &str = "card.eth";

/// The host in the record, and one to which it redirects.
pub(super) const HOSTS: [&str; 2] = ["cards.sandbox.example", MOVED];

const MOVED: &str = "www.museum.example";

/// A request, and the card.
pub(super) struct CardRequest<'r> {
    pub(super) head: &'r str,
    pub(super) card: &'r Bytes,
}

impl CardRequest<'_> {
    fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }

    /// The honest answer.
    fn honest(&self) -> Answer {
        typed("application/json", self.card)
    }

    /// The card with its text changed.
    fn changed(&self, change: impl FnOnce(&str) -> String) -> Answer {
        let changed = change(std::str::from_utf8(self.card).unwrap());
        assert_ne!(changed.as_bytes(), self.card);
        typed("application/json", changed)
    }

    fn coded(&self, coding: &str, body: impl AsRef<[u8]>) -> Answer {
        whole("200 OK", &format!("Content-Type: application/json\r\nContent-Encoding: {coding}\r\n"), body)
    }

    /// A redirect of the first request, and `answer` to the next one.
    fn moved(&self, status: &str, location: &str, answer: impl FnOnce() -> Answer) -> Answer {
        match self.path() {
            "/moved" | "/moved/" => answer(),
            _ => redirected(status, location),
        }
    }
}

fn typed(content_type: &str, body: impl AsRef<[u8]>) -> Answer {
    whole("200 OK", &format!("Content-Type: {content_type}\r\n"), body)
}

fn text(status: &str, body: &str) -> Answer {
    whole(status, "Content-Type: text/plain\r\n", body)
}

type Answers = fn(&CardRequest) -> Answer;

const fn exhibit(name: &'static str, what: &'static str, seen: &'static str, answer: Answers) -> Exhibit<Answers> {
    Exhibit { name, what, seen, asked: NAME, is_silent: false, answer }
}

pub(super) static ALL: &[Exhibit<Answers>] = &[
    exhibit("honest", "HTTP 200 and the card", "static hosts", |r| typed("application/json", r.card)),
    exhibit("type: none", "no media type", "plain file servers", |r| whole("200 OK", "", r.card)),
    exhibit("type: text/plain", "`text/plain`", "raw.githubusercontent.com", |r| {
        typed("text/plain; charset=utf-8", r.card)
    }),
    exhibit("type: octet-stream", "`binary/octet-stream`", "Amazon S3", |r| typed("binary/octet-stream", r.card)),
    exhibit("type: text/html", "`text/html`", "PHP hosts", |r| typed("text/html", r.card)),
    exhibit("status: 201", "HTTP 201 and the card", "web frameworks", |r| whole("201 Created", "", r.card)),
    exhibit("status: 202", "HTTP 202 and the card", "web frameworks", |r| whole("202 Accepted", "", r.card)),
    exhibit("status: 203", "HTTP 203 and the card", "transforming proxies", |r| {
        whole("203 Non-Authoritative Information", "", r.card)
    }),
    exhibit("status: 204", "HTTP 204", "hosts without the file", |_| whole("204 No Content", "", "")),
    exhibit("status: 206", "HTTP 206 and the first bytes", "caches", |r| {
        let range = format!("Content-Range: bytes 0-9/{}\r\n", r.card.len());
        whole("206 Partial Content", &range, &r.card[..10])
    }),
    exhibit("status: 304", "HTTP 304, unconditional request", "caches", |_| whole("304 Not Modified", "", "")),
    exhibit("status: 400", "HTTP 400", "proxies", |_| page("400 Bad Request")),
    exhibit("status: 401", "HTTP 401 and a log-in page", "Vercel", |_| page("401 Unauthorized")),
    exhibit("status: 403", "HTTP 403 and a challenge in HTML", "Cloudflare (missuo/tokens #36)", |_| {
        page("403 Forbidden")
    }),
    exhibit("status: 404", "HTTP 404 below `/.well-known/`", "GitHub Pages (isaacs/github #1688)", |_| {
        page("404 Not Found")
    }),
    exhibit("status: 410", "HTTP 410", "hosts that closed", |_| page("410 Gone")),
    exhibit("status: 429", "HTTP 429", "raw.githubusercontent.com (artifacthub #4397)", |_| {
        text("429 Too Many Requests", "429: Too Many Requests")
    }),
    exhibit("status: 429 with a pause", "HTTP 429 and `Retry-After`", "CDNs", |_| {
        whole("429 Too Many Requests", "Retry-After: 60\r\n", "")
    }),
    exhibit("status: 451", "HTTP 451", "blocked countries", |_| page("451 Unavailable For Legal Reasons")),
    exhibit("status: 500", "HTTP 500 and an error in JSON", "web frameworks", |_| {
        whole(
            "500 Internal Server Error",
            "Content-Type: application/json\r\n",
            r#"{"error": "Internal Server Error"}"#,
        )
    }),
    exhibit("status: 502", "HTTP 502 and HTML", "load balancers", |_| page("502 Bad Gateway")),
    exhibit("status: 503", "HTTP 503 and `Retry-After`", "hosts under maintenance", |_| {
        whole("503 Service Unavailable", "Retry-After: 3600\r\n", "")
    }),
    exhibit("status: 504", "HTTP 504 and HTML", "load balancers", |_| page("504 Gateway Time-out")),
    exhibit("status: 520", "HTTP 520 and HTML", "Cloudflare", |_| page("520 Web Server Returned an Unknown Error")),
    exhibit("status: 522", "HTTP 522 and HTML", "Cloudflare", |_| page("522 Connection Timed Out")),
    exhibit("status: 526", "HTTP 526 and HTML", "Cloudflare", |_| page("526 Invalid SSL Certificate")),
    exhibit("status: 530", "HTTP 530 and a line of text", "Cloudflare", |_| {
        text("530 Origin DNS Error", "error code: 1016")
    }),
    silent(exhibit("silent", "no answer", "sleeping hosts", |_| Answer::Stall(Vec::new()))),
    exhibit("closed", "closed connection", "firewalls", |_| Answer::Cut(Vec::new())),
    exhibit("redirect: another path", "HTTP 301 to another path", "hosts that moved", |r| {
        r.moved("301 Moved Permanently", "/moved", || r.honest())
    }),
    exhibit("redirect: slash", "HTTP 308 that adds a slash", "Next.js, Vercel", |r| {
        r.moved("308 Permanent Redirect", "/moved/", || r.honest())
    }),
    exhibit("redirect: www", "HTTP 307 to another host", "Vercel, Netlify", |r| {
        r.moved("307 Temporary Redirect", &format!("https://{MOVED}/moved"), || r.honest())
    }),
    exhibit("redirect: http", "HTTP 301 to plain http", "TLS proxies", |_| {
        redirected("301 Moved Permanently", &format!("http://{MOVED}/moved"))
    }),
    exhibit("redirect: address", "HTTP 302 to a private address", "proxies", |_| {
        redirected("302 Found", "https://10.0.0.1/card.json")
    }),
    exhibit("redirect: log-in", "HTTP 302 to a log-in page", "single sign-on", |r| {
        r.moved("302 Found", "/moved", || typed("text/html", "<!DOCTYPE html><title>Sign in</title>"))
    }),
    exhibit("redirect: loop", "HTTP 301 to itself", "Cloudflare's flexible TLS", |r| {
        redirected("301 Moved Permanently", r.path())
    }),
    exhibit("redirect: nowhere", "HTTP 302 without `Location`", "hosts", |_| whole("302 Found", "", "")),
    exhibit("body: index page", "an application's index page", "vite-react-chakra-starter #87", |_| {
        typed("text/html", "<!DOCTYPE html><div id=\"root\"></div>")
    }),
    exhibit("body: warning page", "a warning to visitors", "ngrok (ngrok-docs #848)", |_| {
        typed("text/html", "<!DOCTYPE html><title>You are about to visit</title>")
    }),
    exhibit("body: none", "HTTP 200 without a body", "load balancers", |_| typed("application/json", "")),
    exhibit("body: BOM", "a byte order mark", "IIS (iisexpress-proxy #8)", |r| {
        r.changed(|card| format!("\u{feff}{card}"))
    }),
    exhibit("body: CRLF", "CR LF line ends", "git (dotnet/aspnetcore #19796)", |r| {
        r.changed(|card| card.replace('\n', "\r\n"))
    }),
    exhibit("body: line end added", "an added line end", "editors, git hooks", |r| {
        r.changed(|card| format!("{card}\n"))
    }),
    exhibit("body: no line end", "a removed last line end", "templates", |r| {
        r.changed(|card| card.trim_end().to_owned())
    }),
    exhibit("body: minified", "compact JSON", "CDNs (Umbraco.Cloud.Issues #295)", |r| {
        r.changed(|card| serde_json::from_str::<serde_json::Value>(card).unwrap().to_string())
    }),
    exhibit("body: older", "an older card", "CDN caches (cdnjs #14210)", |r| {
        r.changed(|card| card.replacen("1.0.0", "0.9.0", 1))
    }),
    exhibit("body: in an envelope", "`{\"data\": …}` around the card", "API gateways", |r| {
        r.changed(|card| format!("{{\"data\": {card}}}"))
    }),
    exhibit("coding: gzip", "gzip", "CDNs", |r| r.coded("gzip", gzip(r.card))),
    exhibit("coding: gzip, not named", "gzip without `Content-Encoding`", "Amazon S3, compressed uploads", |r| {
        typed("application/json", gzip(r.card))
    }),
    exhibit("coding: gzip in name only", "`Content-Encoding: gzip` over plain bytes", "builder-web #15", |r| {
        r.coded("gzip", r.card)
    }),
    exhibit("coding: gzip twice", "gzip within gzip, in two headers", "nginx #608, grafana #71521", |r| {
        r.coded("gzip\r\nContent-Encoding: gzip", gzip(&gzip(r.card)))
    }),
    exhibit("coding: gzip twice, once named", "gzip within gzip, in one header", "hapi #687", |r| {
        r.coded("gzip", gzip(&gzip(r.card)))
    }),
    exhibit("coding: br", "brotli, not requested", "xroche/httrack #556", |r| r.coded("br", r.card)),
    exhibit("coding: zstd", "zstd, not requested", "apache/apisix #11732", |r| r.coded("zstd", r.card)),
    exhibit("coding: deflate", "deflate, not requested", "old proxies", |r| r.coded("deflate", r.card)),
    exhibit("length: too long", "fewer bytes than `Content-Length`", "actix-web #930", |r| short_of_its_length(r.card)),
    exhibit("length: too short", "more bytes than `Content-Length`", "expressjs/compression #6", |r| {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n";
        Answer::Whole([head.as_bytes(), &r.card[..]].concat())
    }),
    exhibit("length: no last chunk", "chunked body without its end", "proxies", |r| without_last_chunk(r.card)),
    exhibit("length: over the limit", "1 MiB of added white space", "flooding", |r| {
        r.changed(|card| card.to_owned() + &" ".repeat(1 << 20))
    }),
];
