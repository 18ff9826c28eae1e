//! How the web hosts of Agent-Cards answer, as data.

use bytes::Bytes;

use super::exhibit::{Exhibit, page, redirected, short_of_its_length, silent, whole, without_last_chunk};
use crate::server::{Answer, gzip};

/// What the table begins with.
pub(super) const HEADING: &str = "\
# Card hosts and their answers

Each row describes behaviour of web hosts and CDNs that has been reported. The columns show the verdict if no IPFS
gateway has the card, and the verdict if one has it. The host is never believed: the card's bytes must match the name's
records. An honest host would make the agent *trusted*. `tests/hostile/museum.rs` generates this table.

| host | answers | observed at | verdict | cause | with a gateway |
|---|---|---|---|---|---|
";

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
    exhibit("type: none", "the card without a type", "plain file servers", |r| whole("200 OK", "", r.card)),
    exhibit("type: text/plain", "the card as text", "raw.githubusercontent.com", |r| {
        typed("text/plain; charset=utf-8", r.card)
    }),
    exhibit("type: octet-stream", "the card as `binary/octet-stream`", "Amazon S3", |r| {
        typed("binary/octet-stream", r.card)
    }),
    exhibit("type: text/html", "the card as HTML", "PHP hosts", |r| typed("text/html", r.card)),
    exhibit("status: 201", "HTTP 201 and the card", "hosts with a framework", |r| whole("201 Created", "", r.card)),
    exhibit("status: 202", "HTTP 202 and the card", "hosts with a framework", |r| whole("202 Accepted", "", r.card)),
    exhibit("status: 203", "HTTP 203 and the card", "proxies that transform", |r| {
        whole("203 Non-Authoritative Information", "", r.card)
    }),
    exhibit("status: 204", "HTTP 204", "hosts without the file", |_| whole("204 No Content", "", "")),
    exhibit("status: 206", "HTTP 206 and the first bytes", "caches", |r| {
        let range = format!("Content-Range: bytes 0-9/{}\r\n", r.card.len());
        whole("206 Partial Content", &range, &r.card[..10])
    }),
    exhibit("status: 304", "HTTP 304 to a request without a condition", "caches", |_| {
        whole("304 Not Modified", "", "")
    }),
    exhibit("status: 400", "HTTP 400", "proxies", |_| page("400 Bad Request")),
    exhibit("status: 401", "HTTP 401 and a log-in page", "Vercel's deployment protection", |_| {
        page("401 Unauthorized")
    }),
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
    exhibit("status: 451", "HTTP 451", "hosts that block a country", |_| page("451 Unavailable For Legal Reasons")),
    exhibit("status: 500", "HTTP 500 and an error in JSON", "hosts with a framework", |_| {
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
    silent(exhibit("silent", "nothing", "hosts that sleep", |_| Answer::Stall(Vec::new()))),
    exhibit("closed", "nothing, and closes the connection", "firewalls", |_| Answer::Cut(Vec::new())),
    exhibit("redirect: another path", "HTTP 301 to another path", "hosts that moved", |r| {
        r.moved("301 Moved Permanently", "/moved", || r.honest())
    }),
    exhibit("redirect: slash", "HTTP 308 that adds a slash", "Next.js, Vercel", |r| {
        r.moved("308 Permanent Redirect", "/moved/", || r.honest())
    }),
    exhibit("redirect: www", "HTTP 307 to another host", "Vercel, Netlify", |r| {
        r.moved("307 Temporary Redirect", &format!("https://{MOVED}/moved"), || r.honest())
    }),
    exhibit("redirect: http", "HTTP 301 to plain http", "hosts behind a proxy that ends TLS", |_| {
        redirected("301 Moved Permanently", &format!("http://{MOVED}/moved"))
    }),
    exhibit("redirect: address", "HTTP 302 to a private address", "hosts behind a proxy", |_| {
        redirected("302 Found", "https://10.0.0.1/card.json")
    }),
    exhibit("redirect: log-in", "HTTP 302 to a log-in page", "single sign-on", |r| {
        r.moved("302 Found", "/moved", || typed("text/html", "<!DOCTYPE html><title>Sign in</title>"))
    }),
    exhibit("redirect: loop", "HTTP 301 to itself", "Cloudflare's flexible TLS", |r| {
        redirected("301 Moved Permanently", r.path())
    }),
    exhibit("redirect: nowhere", "HTTP 302 without `Location`", "hosts", |_| whole("302 Found", "", "")),
    exhibit("body: index page", "HTTP 200 and the page of an application", "vite-react-chakra-starter #87", |_| {
        typed("text/html", "<!DOCTYPE html><div id=\"root\"></div>")
    }),
    exhibit("body: warning page", "HTTP 200 and a warning to visitors", "ngrok (ngrok-docs #848)", |_| {
        typed("text/html", "<!DOCTYPE html><title>You are about to visit</title>")
    }),
    exhibit("body: none", "HTTP 200 and no body", "load balancers", |_| typed("application/json", "")),
    exhibit("body: BOM", "a byte order mark before the card", "IIS (iisexpress-proxy #8)", |r| {
        r.changed(|card| format!("\u{feff}{card}"))
    }),
    exhibit("body: CRLF", "each line end as CR LF", "git (dotnet/aspnetcore #19796)", |r| {
        r.changed(|card| card.replace('\n', "\r\n"))
    }),
    exhibit("body: line end added", "a line end after the card", "editors, git hooks", |r| {
        r.changed(|card| format!("{card}\n"))
    }),
    exhibit("body: no line end", "the card without its last line end", "templates", |r| {
        r.changed(|card| card.trim_end().to_owned())
    }),
    exhibit("body: minified", "the card as compact JSON", "CDNs (Umbraco.Cloud.Issues #295)", |r| {
        r.changed(|card| serde_json::from_str::<serde_json::Value>(card).unwrap().to_string())
    }),
    exhibit("body: older", "another version of the card", "CDN caches (cdnjs #14210)", |r| {
        r.changed(|card| card.replacen("1.0.0", "0.9.0", 1))
    }),
    exhibit("body: in an envelope", "`{\"data\": …}` around the card", "API gateways", |r| {
        r.changed(|card| format!("{{\"data\": {card}}}"))
    }),
    exhibit("coding: gzip", "gzip, which clresolve accepts", "CDNs", |r| r.coded("gzip", gzip(r.card))),
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
    exhibit("coding: br", "a coding that was not asked for", "xroche/httrack #556", |r| r.coded("br", r.card)),
    exhibit("coding: zstd", "a coding that was not asked for", "apache/apisix #11732", |r| r.coded("zstd", r.card)),
    exhibit("coding: deflate", "a coding that was not asked for", "old proxies", |r| r.coded("deflate", r.card)),
    exhibit("length: too long", "fewer bytes than `Content-Length`", "actix-web #930", |r| short_of_its_length(r.card)),
    exhibit("length: too short", "a `Content-Length` that ends within the card", "expressjs/compression #6", |r| {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n";
        Answer::Whole([head.as_bytes(), &r.card[..]].concat())
    }),
    exhibit("length: no last chunk", "a chunked body that breaks off", "proxies", |r| without_last_chunk(r.card)),
    exhibit("length: over the limit", "1 MiB of white space after the card", "flooding", |r| {
        r.changed(|card| card.to_owned() + &" ".repeat(1 << 20))
    }),
];
