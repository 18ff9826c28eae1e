//! Every fault of an IPFS gateway, over any content: responses as bytes on the wire.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use clresolve_ipfs::build::{BlocksByCid, UnixFsLayout, build_directory_tree, write_car};
use clresolve_ipfs::{ContentId, DagWalk, DagWalkBudget, UnixFsPath};
use clresolve_resolver::fetch::SourceUnavailableError;

use super::server::{Answer, answer, gzip, status};

/// Time limit of a request to a server that never answers. Slow servers pause for a tenth of it.
pub(crate) const SHORT: Duration = Duration::from_millis(200);

/// Where the card of [`Content::new`] is.
const PATH: &str = "agents/a b.json";

/// A directory with a card in a subdirectory, and a file of several chunks.
#[derive(Clone)]
pub(crate) struct Content {
    pub(crate) root: ContentId,
    pub(crate) path: String,
    pub(crate) blocks: BlocksByCid,
    pub(crate) card: Bytes,
}

impl Content {
    pub(crate) fn new() -> Self {
        Self::of(b"{\"id\":\"summarizeagent.eth\"}")
    }

    /// The same with another card.
    pub(crate) fn of(card: &'static [u8]) -> Self {
        let card = Bytes::from_static(card);
        let long = Bytes::from((0..4000u32).flat_map(u32::to_be_bytes).collect::<Vec<_>>());
        let files = BTreeMap::from([(PATH.to_owned(), card.clone()), ("long".to_owned(), long)]);
        let (root, blocks) = build_directory_tree(&files, UnixFsLayout { chunk: 4096, ..UnixFsLayout::default() });
        Self { root, path: PATH.to_owned(), blocks, card }
    }

    pub(crate) fn car(&self) -> Vec<u8> {
        write_car(&self.root, &self.blocks)
    }

    pub(crate) fn block(&self, head: &str) -> Option<Bytes> {
        let text = head.split(' ').nth(1)?.strip_prefix("/ipfs/")?.strip_suffix("?format=raw")?;
        self.blocks.get(&ContentId::parse(text).unwrap()).cloned()
    }

    /// The response of a correct gateway.
    pub(crate) fn honest(&self, head: &str) -> Answer {
        if is_car(head) { as_car(&self.car()) } else { self.raw(head) }
    }

    /// Serves blocks one by one.
    pub(crate) fn raw(&self, head: &str) -> Answer {
        self.block(head).map_or_else(|| status("404 Not Found"), |block| as_raw(&block))
    }

    /// Serves this tree as the one of `genuine`, of which the first `kept` blocks on the way to the card are served.
    /// Below the first block that is passed off each one has the hash that leads to it.
    pub(crate) fn passed_off(&self, genuine: &Self, kept: usize, head: &str) -> Answer {
        let own = self.along();
        let mut sections = genuine.along();
        for (section, (_, block)) in sections.iter_mut().zip(&own).skip(kept) {
            section.1.clone_from(block);
        }
        let passed_off = Self { blocks: sections.into_iter().chain(own).collect(), ..Self::new() };
        passed_off.honest(head)
    }

    /// The blocks from the root to the card, in the order in which they are walked.
    pub(crate) fn along(&self) -> Sections {
        let mut walk =
            DagWalk::new(self.root, &UnixFsPath::parse_literal(&self.path).unwrap(), DagWalkBudget::for_agent_card());
        let mut sections = Vec::new();
        while let Some(cid) = walk.wanted_block().copied() {
            sections.push((cid, self.blocks[&cid].clone()));
            walk.supply_block(self.blocks[&cid].clone()).unwrap();
        }
        assert!(sections.len() >= 3, "the faults change the third block");
        sections
    }
}

pub(crate) fn is_car(head: &str) -> bool {
    head.contains("format=car")
}

pub(crate) fn as_car(body: &[u8]) -> Answer {
    Answer::Whole(answer("200 OK", "Content-Type: application/vnd.ipld.car; version=1\r\n", body))
}

pub(crate) fn as_raw(body: &[u8]) -> Answer {
    Answer::Whole(answer("200 OK", "Content-Type: application/vnd.ipld.raw\r\n", body))
}

/// A request to a gateway, and the content that it has.
pub(crate) struct GatewayQuery<'c> {
    pub(crate) content: &'c Content,
    pub(crate) what: What,
}

pub(crate) enum What {
    Car,
    Block(Bytes),
}

impl<'c> GatewayQuery<'c> {
    pub(crate) fn of(content: &'c Content, head: &str) -> Self {
        let what = match content.block(head) {
            Some(block) => What::Block(block),
            None if is_car(head) => What::Car,
            None => panic!("{head}"),
        };
        Self { content, what }
    }

    pub(crate) fn along(&self) -> Sections {
        self.content.along()
    }

    pub(crate) fn sealed(&self, sections: &Sections) -> Vec<u8> {
        write_car(&self.content.root, sections.iter().map(|(cid, block)| (cid, block)))
    }

    /// The right answer.
    pub(crate) fn body(&self) -> Vec<u8> {
        match &self.what {
            What::Car => self.sealed(&self.along()),
            What::Block(block) => block.to_vec(),
        }
    }

    /// The right answer under these headers.
    pub(crate) fn with(&self, headers: &str) -> Answer {
        Answer::Whole(answer("200 OK", headers, &self.body()))
    }
}

pub(crate) type Sections = Vec<(ContentId, Bytes)>;

/// Answers CARs with a changed one, and blocks well.
pub(crate) fn edited(asked: &GatewayQuery, edit: impl FnOnce(&mut Sections)) -> Answer {
    rewritten(asked, |_| {
        let mut sections = asked.along();
        edit(&mut sections);
        asked.sealed(&sections)
    })
}

pub(crate) fn rewritten(asked: &GatewayQuery, write: impl FnOnce(Vec<u8>) -> Vec<u8>) -> Answer {
    match &asked.what {
        What::Car => as_car(&write(asked.body())),
        What::Block(block) => as_raw(block),
    }
}

/// A whole CAR cut after its header, and these bytes after it.
fn after_header(asked: &GatewayQuery, whole: &[u8], rest: &[&[u8]]) -> Vec<u8> {
    let header = asked.sealed(&Vec::new()).len();
    [&whole[..header], &rest.concat()].concat()
}

fn flipped(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    bytes
}

fn other() -> (ContentId, Bytes) {
    let block = Bytes::from_static(b"{\"not\":\"the block you asked for\"}");
    (ContentId::from_raw_block(&block), block)
}

/// The head of a response without its length, or with a wrong one.
fn head(headers: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{headers}\r\n").into_bytes()
}

fn promised(length: usize) -> String {
    format!("Content-Length: {length}\r\n")
}

/// The result when only this gateway is asked.
#[derive(Clone, Debug)]
pub(crate) enum Ends {
    /// With the card.
    Proven,
    /// The gateway is a liar.
    Lied,
    /// Unproven, for this reason.
    Unavailable(SourceUnavailableError),
    /// Unproven: more than a block may have.
    Oversize,
    /// Unproven: the gateway asks for a pause of these seconds.
    Throttled(u16, u64),
}

pub(crate) type Fault = fn(&GatewayQuery) -> Answer;

/// Every fault that was seen in a real or a test gateway, and its result.
pub(crate) const FAULTS: [(&str, Fault, Ends); 54] = [
    // what is sent
    (
        "corrupt",
        |asked| match &asked.what {
            What::Car => {
                let mut sections = asked.along();
                sections[2].1 = flipped(&sections[2].1).into();
                as_car(&asked.sealed(&sections))
            }
            What::Block(block) => as_raw(&flipped(block)),
        },
        Ends::Lied,
    ),
    (
        "wrong-block",
        |asked| match &asked.what {
            What::Car => as_car(&asked.sealed(&vec![other()])),
            What::Block(_) => as_raw(&other().1),
        },
        Ends::Lied,
    ),
    (
        "wrong-root",
        |asked| {
            rewritten(asked, |_| {
                let sections = asked.along();
                write_car(&other().0, sections.iter().map(|(cid, block)| (cid, block)))
            })
        },
        Ends::Proven,
    ),
    (
        "no-roots",
        |asked| {
            rewritten(asked, |whole| {
                [&b"\x11\xa2\x65roots\x80\x67version\x01"[..], &whole[asked.sealed(&Vec::new()).len()..]].concat()
            })
        },
        Ends::Proven,
    ),
    ("swap-cid", |asked| edited(asked, |sections| sections[2].0 = sections[0].0), Ends::Proven),
    ("missing-block", |asked| edited(asked, |sections| drop(sections.pop())), Ends::Proven),
    ("reverse", |asked| edited(asked, |sections| sections.reverse()), Ends::Proven),
    (
        "duplicate",
        |asked| edited(asked, |sections| sections.extend(asked.along().into_iter().chain(asked.along()))),
        Ends::Proven,
    ),
    (
        "extra-blocks",
        |asked| {
            edited(asked, |sections| {
                let extra = (0..100_u8).map(|number| Bytes::from(vec![number; 1024]));
                sections.splice(1..1, extra.map(|block| (ContentId::from_raw_block(&block), block)));
            })
        },
        Ends::Proven,
    ),
    (
        "a lie that is not wanted",
        |asked| {
            edited(asked, |sections| {
                sections.insert(0, (other().0, Bytes::from_static(b"a lie")));
            })
        },
        Ends::Proven,
    ),
    (
        "a lie out of order",
        |asked| {
            edited(asked, |sections| {
                sections.insert(0, (sections[2].0, Bytes::from_static(b"a lie")));
            })
        },
        Ends::Lied,
    ),
    (
        "huge-section",
        |asked| rewritten(asked, |whole| after_header(asked, &whole, &[&[0x80, 0x80, 0x80, 0x80, 0x80, 0x20]])),
        Ends::Proven,
    ),
    (
        "overlong-varint",
        |asked| rewritten(asked, |whole| after_header(asked, &whole, &[&[0xff; 10], &[1]])),
        Ends::Proven,
    ),
    (
        "padded-varint",
        |asked| rewritten(asked, |whole| after_header(asked, &whole, &[&[0xa6, 0x81, 0x00]])),
        Ends::Proven,
    ),
    (
        "carv2",
        |asked| rewritten(asked, |whole| [&b"\x0a\xa1\x67version\x02"[..], &[0; 40], &whole].concat()),
        Ends::Proven,
    ),
    ("zero-section", |asked| rewritten(asked, |whole| after_header(asked, &whole, &[&[0; 64]])), Ends::Proven),
    (
        "car-as-raw",
        |asked| match &asked.what {
            What::Car => as_raw(&asked.body()),
            What::Block(block) => as_raw(block),
        },
        Ends::Proven,
    ),
    ("car for a block", |asked| as_car(&asked.sealed(&asked.along())), Ends::Proven),
    ("car for a block, cut", |asked| as_car(&asked.sealed(&asked.along()[..2].to_vec())), Ends::Lied),
    ("empty", |_| as_raw(b""), Ends::Lied),
    (
        "truncate-clean",
        |asked| {
            let body = asked.body();
            Answer::Whole(answer("200 OK", "", &body[..body.len() / 2]))
        },
        Ends::Lied,
    ),
    // how much
    (
        "endless-car",
        |asked| {
            let filler = asked.sealed(&vec![other()]).split_off(asked.sealed(&Vec::new()).len());
            Answer::Endless([head(""), asked.body()[..59].to_vec()].concat(), filler.repeat(100))
        },
        Ends::Oversize,
    ),
    ("endless", |_| Answer::Endless(head(""), vec![0; 1 << 16]), Ends::Oversize),
    (
        "endless chunks",
        |_| {
            Answer::Endless(head("Transfer-Encoding: chunked\r\n"), [&b"400\r\n"[..], &[b'x'; 0x400], b"\r\n"].concat())
        },
        Ends::Oversize,
    ),
    ("an endless tail", |asked| Answer::Endless([head(""), asked.body()].concat(), vec![0xff; 1 << 16]), Ends::Proven),
    ("giant-block", |_| Answer::Whole([head(""), vec![7; 9 << 20]].concat()), Ends::Oversize),
    (
        "huge-length",
        |asked| Answer::Cut([head("Content-Length: 9007199254740991\r\n"), asked.body()].concat()),
        Ends::Proven,
    ),
    ("huge-length and nothing else", |_| Answer::Cut(head("Content-Length: 9007199254740991\r\n")), Ends::Oversize),
    (
        "gzip-bomb",
        |_| Answer::Whole(answer("200 OK", "Content-Encoding: gzip\r\n", &gzip(&vec![0; 9 << 20]))),
        Ends::Oversize,
    ),
    (
        "gzip-honest",
        |asked| Answer::Whole(answer("200 OK", "Content-Encoding: gzip\r\n", &gzip(&asked.body()))),
        Ends::Proven,
    ),
    (
        "data that is not gzip",
        |asked| asked.with("Content-Encoding: gzip\r\n"),
        Ends::Unavailable(SourceUnavailableError::Encoding),
    ),
    (
        "an unknown coding",
        |asked| asked.with("Content-Encoding: br\r\n"),
        Ends::Unavailable(SourceUnavailableError::Encoding),
    ),
    (
        "header-flood",
        |_| Answer::Whole(answer("200 OK", &"X-Flood: yyyyyyyy\r\n".repeat(2000), b"")),
        Ends::Unavailable(SourceUnavailableError::Head),
    ),
    (
        "a wide header",
        |asked| asked.with(&format!("X-Wide: {}\r\n", "y".repeat(40_000))),
        Ends::Unavailable(SourceUnavailableError::Head),
    ),
    // when it stops
    (
        "truncate",
        |asked| {
            let body = asked.body();
            Answer::Cut([head(&promised(body.len())), body[..body.len() / 2].to_vec()].concat())
        },
        Ends::Unavailable(SourceUnavailableError::Truncated),
    ),
    ("drop", |_| Answer::Cut(Vec::new()), Ends::Unavailable(SourceUnavailableError::Truncated)),
    (
        "drop-after-headers",
        |asked| Answer::Cut(head(&promised(asked.body().len()))),
        Ends::Unavailable(SourceUnavailableError::Truncated),
    ),
    (
        "stall",
        |asked| Answer::Stall(head(&promised(asked.body().len()))),
        Ends::Unavailable(SourceUnavailableError::Timeout),
    ),
    ("stall-before-headers", |_| Answer::Stall(Vec::new()), Ends::Unavailable(SourceUnavailableError::Timeout)),
    (
        "drip",
        |asked| Answer::Drip(head(&promised(asked.body().len())), asked.body(), SHORT / 10),
        Ends::Unavailable(SourceUnavailableError::Timeout),
    ),
    (
        "a dripping head",
        |_| Answer::Drip(Vec::new(), head(&format!("X-Drip: {}\r\n", "y".repeat(8000))), SHORT / 10),
        Ends::Unavailable(SourceUnavailableError::Timeout),
    ),
    // what it is said to be
    ("wrong-type", |asked| asked.with("Content-Type: text/html; charset=utf-8\r\n"), Ends::Proven),
    ("no-type", |asked| asked.with(""), Ends::Proven),
    ("lying-etag", |asked| asked.with("ETag: \"bafkqaaa\"\r\nX-Ipfs-Roots: bafkqaaa\r\n"), Ends::Proven),
    (
        "html",
        |_| Answer::Whole(answer("200 OK", "Content-Type: text/html\r\n", b"<!doctype html><title>Checking</title>")),
        Ends::Unavailable(SourceUnavailableError::Malformed),
    ),
    (
        "partial",
        |asked| {
            let range = format!("Content-Range: bytes 0-9/{}\r\n", asked.body().len());
            Answer::Whole(answer("206 Partial Content", &range, &asked.body()[..10]))
        },
        Ends::Unavailable(SourceUnavailableError::Status(206)),
    ),
    (
        "not-http",
        |_| Answer::Whole(b"SSH-2.0-OpenSSH\r\n\r\n".to_vec()),
        Ends::Unavailable(SourceUnavailableError::Head),
    ),
    ("status:404", |_| status("404 Not Found"), Ends::Unavailable(SourceUnavailableError::Status(404))),
    ("status:410", |_| status("410 Gone"), Ends::Unavailable(SourceUnavailableError::Status(410))),
    ("status:500", |_| status("500 Oops"), Ends::Unavailable(SourceUnavailableError::Status(500))),
    ("status:504", |_| status("504 Gateway Timeout"), Ends::Unavailable(SourceUnavailableError::Status(504))),
    ("status:429", |_| Answer::Whole(answer("429 Too Many", "Retry-After: 2\r\n", b"")), Ends::Throttled(429, 2)),
    (
        "status:503 with an absurd time",
        |_| Answer::Whole(answer("503 Busy", "Retry-After: 99999999999999999999999\r\n", b"")),
        Ends::Throttled(503, 300),
    ),
    (
        "status:503 at once again",
        |_| Answer::Whole(answer("503 Busy", "Retry-After: 0\r\n", b"")),
        Ends::Throttled(503, 1),
    ),
];

impl Ends {
    /// Whether the result needs a time limit to pass.
    pub(crate) fn needs_time(&self) -> bool {
        matches!(self, Self::Unavailable(SourceUnavailableError::Timeout))
    }
}
