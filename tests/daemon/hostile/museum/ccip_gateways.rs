//! How CCIP-Read gateways (ERC-3668) answer, as data.

use clresolve_resolver::fetch::{Egress, EgressRequest, UntrustedUrl, deadline_in};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::task::block_in_place;

use super::exhibit::{Exhibit, page, redirected, short_of_its_length, silent, whole, without_last_chunk};
use crate::hostile::PATIENCE;
use crate::support::server::{Answer, gzip};

/// The beginning of the page.
pub(super) const HEADING: &str = "\
# CCIP-Read gateways

Behaviour that has been reported for off-chain gateways (ERC-3668), by the verdict on an otherwise trusted agent if that
gateway is the only one, and if an honest gateway follows it in the contract's list. A 4xx status ends the lookup; after
any other failure clresolve asks the next gateway. `HTTP status` causes are not repeated.
";

pub(super) const COLUMNS: [&str; 3] = ["answer", "observed at", "cause"];

pub(super) const HOST: &str = "ccip.museum.example";

/// The template of the sandbox's own gateway.
pub(super) const HONEST: &str = "https://ccip.sandbox.example/ok/{sender}/{data}.json";

const GET: &str = "get.eth";
const POST: &str = "post.eth";

/// The agents, each with the URL template for [`HOST`] in its contract.
pub(super) const AGENTS: [(&str, &str); 2] =
    [(GET, "https://ccip.museum.example/{sender}/{data}.json"), (POST, "https://ccip.museum.example/{sender}")];

/// Maximum length of an answer of the sandbox's gateway.
const ANSWER_LIMIT: usize = 1 << 20;

/// A request, and the gateway that has the honest answer to it.
pub(super) struct Lookup {
    sender: String,
    data: String,
    upstream: Egress,
}

impl Lookup {
    pub(super) fn of(request: &str, upstream: Egress) -> Self {
        let path = request.split(' ').nth(1).unwrap().trim_start_matches('/');
        let (sender, data) = match path.split_once('/') {
            Some((sender, data)) => (sender.to_owned(), data.trim_end_matches(".json").to_owned()),
            None => {
                let body: Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
                assert_eq!(body["sender"], path, "the URL and the body name the sender");
                (path.to_owned(), body["data"].as_str().unwrap().to_owned())
            }
        };
        Self { sender, data, upstream }
    }

    /// The signed data, in hexadecimal.
    fn signed(&self) -> String {
        self.signed_for(&self.sender)
    }

    /// The data, signed for another contract.
    fn signed_for(&self, sender: &str) -> String {
        let url = HONEST.replace("{sender}", sender).replace("{data}", &self.data);
        let url = UntrustedUrl::parse(&url, usize::MAX).unwrap();
        let answered = async {
            let call = EgressRequest::get("application/json");
            let reply = self.upstream.send_untrusted(&url, call, deadline_in(PATIENCE)).await.unwrap();
            reply.read_body(ANSWER_LIMIT).await.unwrap()
        };
        let body = block_in_place(|| Handle::current().block_on(answered));
        let body: Value = serde_json::from_slice(&body).unwrap();
        body["data"].as_str().unwrap().to_owned()
    }

    /// The honest body.
    fn body(&self) -> String {
        json!({"data": self.signed()}).to_string()
    }

    /// Whether the requested record is not set, that is, the result is an empty string.
    fn is_unset(&self) -> bool {
        self.signed().contains(&format!("{:064x}{:064x}{:064x}", 64, 32, 0))
    }
}

type Answers = fn(&Lookup) -> Answer;

const fn exhibit(name: &'static str, what: &'static str, seen: &'static str, answer: Answers) -> Exhibit<Answers> {
    Exhibit { name, what, seen, asked: GET, is_silent: false, answer }
}

const fn posted(exhibit: Exhibit<Answers>) -> Exhibit<Answers> {
    Exhibit { asked: POST, ..exhibit }
}

const JSON: &str = "Content-Type: application/json\r\n";

fn said(status: &str, body: impl AsRef<[u8]>) -> Answer {
    whole(status, JSON, body)
}

/// HTTP 200 with this value as `data`.
fn data(data: impl Into<Value>) -> Answer {
    said("200 OK", json!({"data": data.into()}).to_string())
}

fn coded(coding: &str, body: impl AsRef<[u8]>) -> Answer {
    whole("200 OK", &format!("{JSON}Content-Encoding: {coding}\r\n"), body)
}

pub(super) static ALL: &[Exhibit<Answers>] = &[
    exhibit("honest", "HTTP 200 and the data", "ERC-3668", |l| said("200 OK", l.body())),
    posted(exhibit("honest, by POST", "the same by POST (no `{data}` in the URL)", "ensdomains/docs #331", |l| {
        said("200 OK", l.body())
    })),
    exhibit("status: 201", "HTTP 201 and the data", "NestJS, for POST", |l| said("201 Created", l.body())),
    posted(exhibit("status: 201, by POST", "HTTP 201 by POST", "NestJS, for POST", |l| said("201 Created", l.body()))),
    exhibit("status: 202", "HTTP 202 and the data", "queueing gateways", |l| said("202 Accepted", l.body())),
    exhibit("status: 203", "HTTP 203 and the data", "transforming proxies", |l| {
        said("203 Non-Authoritative Information", l.body())
    }),
    exhibit("status: 204", "HTTP 204", "missing records", |_| whole("204 No Content", "", "")),
    exhibit("status: 301", "HTTP 301 to the data", "hosts that moved", |l| {
        redirected("301 Moved Permanently", &HONEST.replace("{sender}", &l.sender).replace("{data}", &l.data))
    }),
    posted(exhibit("status: 308, by POST", "HTTP 308 that adds a slash", "Next.js, Vercel", |l| {
        redirected("308 Permanent Redirect", &format!("/{}/", l.sender))
    })),
    exhibit("status: 304", "HTTP 304, unconditional request", "caches", |_| whole("304 Not Modified", "", "")),
    exhibit("status: 400", "HTTP 400 and `message`", "ERC-3668", |_| {
        said("400 Bad Request", r#"{"message": "Invalid request format"}"#)
    }),
    exhibit("status: 403", "HTTP 403 and a challenge in HTML", "Cloudflare (missuo/tokens #36)", |_| {
        page("403 Forbidden")
    }),
    exhibit("status: 404", "HTTP 404 and HTML", "smartcontractkit/ccip-read #20", |_| page("404 Not Found")),
    exhibit("status: 404 for what is not set", "HTTP 404 for unset records", "cb.id (snapshot-labs/stamp #551)", |l| {
        match l.is_unset() {
            true => said("404 Not Found", r#"{"message": "not found"}"#),
            false => said("200 OK", l.body()),
        }
    }),
    exhibit("status: 410", "HTTP 410", "retired gateways", |_| whole("410 Gone", "", "")),
    exhibit("status: 414", "HTTP 414 to a long URL", "ethereum/EIPs #4746", |_| page("414 Request-URI Too Large")),
    exhibit("status: 429", "HTTP 429", "rate limits", |_| said("429 Too Many Requests", "{}")),
    exhibit("status: 429 with a pause", "HTTP 429 and `Retry-After`", "rate limits", |_| {
        whole("429 Too Many Requests", "Retry-After: 60\r\n", "")
    }),
    exhibit("status: 500", "HTTP 500 and `message`", "ERC-3668", |_| {
        said("500 Internal Server Error", r#"{"message": "Internal server error"}"#)
    }),
    exhibit("status: 502", "HTTP 502 and HTML", "load balancers", |_| page("502 Bad Gateway")),
    exhibit("status: 503", "HTTP 503 and HTML", "ethers.js #3148", |_| page("503 Service Temporarily Unavailable")),
    exhibit("status: 504", "HTTP 504 and HTML", "ethers.js #3148", |_| page("504 Gateway Time-out")),
    exhibit("status: 522", "HTTP 522 and HTML", "Cloudflare", |_| page("522 Connection Timed Out")),
    exhibit("status: 530", "HTTP 530", "Cloudflare", |_| {
        whole("530 Origin DNS Error", "Content-Type: text/plain\r\n", "error code: 1016")
    }),
    exhibit("closed", "closed connection", "ethers.js #4842", |_| Answer::Cut(Vec::new())),
    silent(exhibit("silent", "no answer", "overloaded gateways", |_| Answer::Stall(Vec::new()))),
    exhibit("type: none", "no media type", "plain file servers", |l| whole("200 OK", "", l.body())),
    exhibit("type: text/plain", "`text/plain`", "raw.githubusercontent.com", |l| {
        whole("200 OK", "Content-Type: text/plain; charset=utf-8\r\n", l.body())
    }),
    exhibit("type: text/html", "`text/html`", "PHP gateways", |l| {
        whole("200 OK", "Content-Type: text/html\r\n", l.body())
    }),
    exhibit("form: HTML", "HTTP 200 and HTML", "single-page applications", |_| page("200 OK")),
    exhibit("form: bare hexadecimal", "the data without JSON", "viem accepts it", |l| {
        whole("200 OK", "Content-Type: text/plain\r\n", l.signed())
    }),
    exhibit("form: result within data", "`{\"data\": {\"result\": \"0x…\"}}`", "smartcontractkit/ccip-read", |l| {
        data(json!({"result": l.signed()}))
    }),
    exhibit("form: result", "`{\"result\": \"0x…\"}`", "JSON-RPC servers", |l| {
        said("200 OK", json!({"result": l.signed()}).to_string())
    }),
    exhibit("form: error", "HTTP 200, an error and a `statusCode`", "smartcontractkit/ccip-read", |_| {
        said("200 OK", r#"{"jobRunID": "1", "statusCode": 500, "error": {"name": "InternalError"}}"#)
    }),
    exhibit("form: message", "HTTP 200 and `message`", "gateways", |_| said("200 OK", r#"{"message": "not found"}"#)),
    exhibit("form: null", "`{\"data\": null}`", "missing records", |_| data(Value::Null)),
    exhibit("form: nothing", "HTTP 200 without a body", "load balancers", |_| said("200 OK", "")),
    exhibit("form: further members", "further members", "metering gateways", |l| {
        said("200 OK", json!({"data": l.signed(), "ttl": 300}).to_string())
    }),
    exhibit("form: BOM", "a byte order mark before the JSON", "IIS (iisexpress-proxy #8)", |l| {
        said("200 OK", format!("\u{feff}{}", l.body()))
    }),
    exhibit("form: CRLF", "line ends around the JSON", "gateways", |l| said("200 OK", format!("\r\n{}\r\n", l.body()))),
    exhibit("data: upper case", "digits in upper case", "gateways", |l| {
        data(format!("0x{}", l.signed().trim_start_matches("0x").to_ascii_uppercase()))
    }),
    exhibit("data: 0X", "`0X` in upper case", "nodes (nethermind #8813)", |l| data(l.signed().replacen("0x", "0X", 1))),
    exhibit("data: without 0x", "data without `0x`", "gateways", |l| data(l.signed().trim_start_matches("0x"))),
    exhibit("data: no hexadecimal", "words instead of data", "gateways", |_| data("not found")),
    exhibit("data: base64", "base64", "Go's `encoding/json`", |_| data("AAAAAAAAAAAAAAAAAAAAAAAAAAA=")),
    exhibit("data: half a digit pair", "an odd number of digits", "gateways", |l| data(&l.signed()[..21])),
    exhibit("data: 0x", "`0x`: no bytes", "missing records", |_| data("0x")),
    exhibit("signature: expired", "expired data", "caches before gateways", |l| {
        let signed = l.signed();
        // The second word is the expiry time.
        data(format!("{}{:064x}{}", &signed[..66], 1, &signed[130..]))
    }),
    exhibit("signature: forged", "data signed by another key", "a rotated key", |l| {
        let mut signed = l.signed();
        // The last 128 digits contain the end of the signature.
        let at = signed.len() - 128;
        let digit = if signed.as_bytes()[at] == b'0' { "1" } else { "0" };
        signed.replace_range(at..=at, digit);
        data(signed)
    }),
    exhibit("signature: another contract", "data signed for another contract", "a redeployed resolver", |l| {
        data(l.signed_for("0x00000000000000000000000000000000000000aa"))
    }),
    exhibit("coding: gzip", "gzip", "CDNs", |l| coded("gzip", gzip(l.body().as_bytes()))),
    exhibit("coding: br", "brotli, not requested", "xroche/httrack #556", |l| coded("br", l.body())),
    exhibit("coding: zstd", "zstd, not requested", "apache/apisix #11732", |l| coded("zstd", l.body())),
    exhibit("coding: gzip twice", "gzip within gzip", "grafana #71521", |l| {
        coded("gzip\r\nContent-Encoding: gzip", gzip(&gzip(l.body().as_bytes())))
    }),
    exhibit("length: too long", "fewer bytes than `Content-Length`", "actix-web #930", |l| {
        short_of_its_length(l.body())
    }),
    exhibit("length: no last chunk", "chunked body without its end", "proxies", |l| without_last_chunk(l.body())),
];
