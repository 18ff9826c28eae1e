//! How IPFS gateways answer requests for CARs and raw blocks, as data.

use bytes::Bytes;
use clresolve_ipfs::ContentId;
use clresolve_ipfs::build::write_car;

use super::exhibit::{Exhibit, page, redirected, silent, whole, without_last_chunk};
use crate::hostile::gateways::NAME;
use crate::support::faults::{FAULTS, Fault, GatewayQuery, What, as_car, as_raw, edited, rewritten};
use crate::support::server::Answer;

/// The beginning of the page.
pub(super) const HEADING: &str = "\
# IPFS gateways

Behaviour that has been reported for public IPFS gateways, by the verdict on an otherwise trusted agent if that gateway
is the only one. The card has several blocks below a path; clresolve asks for one CAR, then for each missing block. With
an honest gateway beside it, every verdict is *trusted*. `HTTP status` causes are not repeated.
";

pub(super) const COLUMNS: [&str; 3] = ["answer", "observed at", "cause"];

pub(super) const HOST: &str = "ipfs.museum.example";

const fn exhibit(name: &'static str, what: &'static str, seen: &'static str, answer: Fault) -> Exhibit<Fault> {
    Exhibit { name, what, seen, asked: NAME, is_silent: false, answer }
}

/// The answer of the fault with that name.
fn fault(name: &str, asked: &GatewayQuery) -> Answer {
    let answer = FAULTS.iter().find(|(known, ..)| *known == name).unwrap().1;
    answer(asked)
}

/// `answer` to a request for a CAR, and the right block to one for a block.
fn for_cars(asked: &GatewayQuery, answer: Answer) -> Answer {
    match &asked.what {
        What::Car => answer,
        What::Block(block) => as_raw(block),
    }
}

/// `answer` to a request for a block, and the right CAR to one for a CAR.
fn for_blocks(asked: &GatewayQuery, answer: Answer) -> Answer {
    match &asked.what {
        What::Car => as_car(&asked.body()),
        What::Block(_) => answer,
    }
}

/// The identity CID of empty content.
fn empty() -> ContentId {
    ContentId::parse("bafkqaaa").unwrap()
}

pub(super) static ALL: &[Exhibit<Fault>] = &[
    exhibit("honest", "CARs and raw blocks", "kubo, rainbow", |q| match &q.what {
        What::Car => as_car(&q.body()),
        What::Block(block) => as_raw(block),
    }),
    exhibit("type: octet-stream", "`application/octet-stream`", "trueblocks-core #2632", |q| {
        q.with("Content-Type: application/octet-stream\r\n")
    }),
    exhibit("type: none", "no media type", "object stores", |q| fault("no-type", q)),
    exhibit("type: text/html", "`text/html`", "proxies", |q| fault("wrong-type", q)),
    exhibit("type: raw for a CAR", "CARs as `application/vnd.ipld.raw`", "proxies", |q| fault("car-as-raw", q)),
    exhibit("only raw blocks", "HTTP 406 to CARs", "path gateway specification", |q| {
        for_cars(q, page("406 Not Acceptable"))
    }),
    exhibit("only raw blocks: 400", "HTTP 400 to CARs with a path", "boxo #356", |q| {
        for_cars(q, whole("400 Bad Request", "Content-Type: text/plain\r\n", "only raw blocks"))
    }),
    exhibit("only raw blocks: 501", "HTTP 501 to CARs", "boxo #225", |q| {
        for_cars(q, whole("501 Not Implemented", "", ""))
    }),
    exhibit("only CARs", "HTTP 406 to raw blocks", "path gateway specification", |q| {
        for_blocks(q, page("406 Not Acceptable"))
    }),
    exhibit("CARs for blocks", "a CAR to each request", "proxies that drop the query", |q| fault("car for a block", q)),
    exhibit("format ignored: page", "the file for CARs, an index page for blocks", "web3.storage #2145", |q| match &q
        .what
    {
        What::Car => whole("200 OK", "Content-Type: application/json\r\n", &q.content.card),
        What::Block(_) => page("200 OK"),
    }),
    exhibit("format ignored: file", "always the file", "web3.storage #2145", |q| {
        whole("200 OK", "Content-Type: application/json\r\n", &q.content.card)
    }),
    exhibit("subdomain", "HTTP 301 to the CID's subdomain", "dweb.link, w3s.link (helia #347)", |q| {
        redirected("301 Moved Permanently", &format!("https://{}.ipfs.dweb.link/?format=raw", q.content.root))
    }),
    exhibit("another gateway", "HTTP 302 to another gateway", "fleek (public-gateway-checker #541)", |q| {
        redirected("302 Found", &format!("https://ipfs.io/ipfs/{}", q.content.root))
    }),
    exhibit("service worker", "a service worker's page", "inbrowser.link", |_| {
        whole("200 OK", "Content-Type: text/html\r\n", "<!DOCTYPE html><script src=\"/ipfs-sw.js\"></script>")
    }),
    exhibit("CAR: no roots", "CARs without roots", "lassie #354", |q| fault("no-roots", q)),
    exhibit("CAR: another root", "CARs with another root", "lassie #326", |q| fault("wrong-root", q)),
    exhibit("CAR: placeholder root", "CARs with root `bafkqaaa`", "ipfs/specs #402", |q| {
        rewritten(q, |_| write_car(&empty(), q.along().iter().map(|(cid, block)| (cid, block))))
    }),
    exhibit("CAR: version 2", "CARv2", "media type (in-web-browsers #192)", |q| fault("carv2", q)),
    exhibit("CAR: any order", "the last block first", "ipfs/specs #412", |q| fault("reverse", q)),
    exhibit("CAR: duplicate root", "the root block twice", "service-worker-gateway #356", |q| {
        edited(q, |sections| sections.insert(1, sections[0].clone()))
    }),
    exhibit("CAR: duplicates", "each block several times", "ipfs/specs #412", |q| fault("duplicate", q)),
    exhibit("CAR: identity block", "a block with identity CID", "freeway #34", |q| {
        edited(q, |sections| sections.insert(1, (empty(), Bytes::new())))
    }),
    exhibit("CAR: scope ignored", "100 blocks beside the path", "freeway #33", |q| fault("extra-blocks", q)),
    exhibit("CAR: no parents", "no blocks of the path", "boxo #283", |q| {
        edited(q, |sections| {
            sections.drain(..q.content.path.split('/').count());
        })
    }),
    exhibit("CAR: cut", "a CAR without its last block", "kubo #11409", |q| fault("missing-block", q)),
    exhibit("CAR: cut, with a marker", "a CAR that ends in an invalid section", "kubo #11409", |q| {
        rewritten(q, |_| {
            let mut sections = q.along();
            sections.pop();
            [q.sealed(&sections), vec![0xff; 10]].concat()
        })
    }),
    exhibit("CAR: only a header", "an empty CAR, HTTP 404 for blocks", "boxo #458, kubo #8818", |q| match &q.what {
        What::Car => as_car(&q.sealed(&Vec::new())),
        What::Block(_) => page("404 Not Found"),
    }),
    exhibit("status: 206", "HTTP 206 and the first bytes", "caches", |q| fault("partial", q)),
    exhibit("status: 304", "HTTP 304, unconditional request", "caches", |_| whole("304 Not Modified", "", "")),
    exhibit("status: 400", "HTTP 400", "kubo #9726", |_| {
        whole("400 Bad Request", "Content-Type: text/plain\r\n", "invalid path")
    }),
    exhibit("status: 403", "HTTP 403 for blocked CIDs", "saturn L1-node #485", |_| page("403 Forbidden")),
    exhibit("status: 404", "HTTP 404", "non-recursive gateways (ipfs/specs #491)", |_| {
        whole("404 Not Found", "Content-Type: text/plain\r\n", "ipld: could not find node")
    }),
    exhibit("status: 410", "HTTP 410 for blocked CIDs", "ipfs/infra #395", |_| whole("410 Gone", "", "")),
    exhibit("status: 412", "HTTP 412 for uncached content", "`only-if-cached`", |_| {
        whole("412 Precondition Failed", "", "")
    }),
    exhibit("status: 429", "HTTP 429", "web3.storage #419", |_| page("429 Too Many Requests")),
    exhibit("status: 429 with a pause", "HTTP 429 and `Retry-After`", "pinata (ipfs-desktop #1954)", |_| {
        whole("429 Too Many Requests", "Retry-After: 60\r\n", "")
    }),
    exhibit("status: 451", "HTTP 451 for blocked CIDs", "kubo #11318", |_| {
        whole("451 Unavailable For Legal Reasons", "", "")
    }),
    exhibit("status: 500", "HTTP 500, no providers", "polkadot-bulletin-chain #641", |_| {
        whole("500 Internal Server Error", "Content-Type: text/plain\r\n", "no providers found for the CID")
    }),
    exhibit("status: 502", "HTTP 502 and HTML", "load balancers", |_| page("502 Bad Gateway")),
    exhibit("status: 503", "HTTP 503 and HTML", "load balancers", |_| page("503 Service Temporarily Unavailable")),
    exhibit("status: 504", "HTTP 504 and HTML", "ipfs.io, dweb.link (kubo #6055)", |_| page("504 Gateway Time-out")),
    exhibit("status: 504, JSON", "HTTP 504 and an error in JSON", "service-worker-gateway #1179", |_| {
        whole("504 Gateway Timeout", "Content-Type: application/json\r\n", r#"{"name": "TimeoutError"}"#)
    }),
    exhibit("status: 524", "HTTP 524 and HTML", "Cloudflare", |_| page("524 A Timeout Occurred")),
    silent(exhibit("silent", "no answer", "kubo #4157", |_| Answer::Stall(Vec::new()))),
    exhibit("closed", "closed connection", "overloaded gateways", |_| Answer::Cut(Vec::new())),
    exhibit("coding: gzip", "gzip, not requested", "CDNs", |q| fault("gzip-honest", q)),
    exhibit("coding: br", "brotli, not requested", "xroche/httrack #556", |q| fault("an unknown coding", q)),
    exhibit("coding: zstd", "zstd, not requested", "apache/apisix #11732", |q| q.with("Content-Encoding: zstd\r\n")),
    exhibit("coding: gzip in name only", "`Content-Encoding: gzip` over plain bytes", "proxies", |q| {
        fault("data that is not gzip", q)
    }),
    exhibit("length: too long", "fewer bytes than `Content-Length`", "actix-web #930", |q| fault("truncate", q)),
    exhibit("length: no last chunk", "chunked body without its end", "ipfs/specs #332", |q| {
        without_last_chunk(q.body())
    }),
    exhibit("body: none", "HTTP 200 without a body", "load balancers", |q| fault("empty", q)),
    exhibit("body: one for all", "always the same few bytes", "via0.com (public-gateway-checker #282)", |_| {
        whole("200 OK", "Content-Type: text/plain\r\n", "143")
    }),
    exhibit("body: HTML as text", "an error page as text", "pinata (PinataCloud/pinata #12)", |_| {
        whole("200 OK", "Content-Type: text/plain\r\n", "This content is not available through this gateway")
    }),
];
