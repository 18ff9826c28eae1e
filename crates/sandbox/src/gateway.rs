//! The trustless IPFS gateways of a sandbox: raw blocks and CARs, and every way in which a gateway can fail.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use bytes::Bytes;
use hyper::header::ACCEPT;
use hyper::{Request, StatusCode};
use serde::Deserialize;

use super::web::{self, Reply};
use clresolve_ipfs::build::{self, Blocks};
use clresolve_ipfs::{Budget, ContentId, ContentPath, Walk, WalkError};

/// Media type of one block.
const RAW: &str = "application/vnd.ipld.raw";

/// Media type of a CAR.
const CAR: &str = "application/vnd.ipld.car";

/// How a gateway responds to requests for existing blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GatewayManners {
    /// The correct blocks.
    #[default]
    Ok,
    /// 404 for everything.
    Missing,
    /// Blocks with one byte changed.
    Lie,
    /// Complete blocks of other content.
    Stranger,
    /// 200 with a page of HTML for every request.
    Html,
    /// Half of the requested bytes, then the connection closes.
    Truncated,
    /// A well-formed CAR with the first half of the blocks. No raw blocks.
    Partial,
    /// An endless body in place of a block or CAR.
    Endless,
    /// The correct CAR, followed endlessly by the bytes of another. No raw blocks.
    EndlessTail,
    /// Directories and the roots of files, but 503 for leaf blocks.
    WithoutLeaves,
    /// 406 for CARs. Raw blocks are correct.
    RawOnly,
    /// 406 for raw blocks. CARs are correct.
    CarOnly,
    /// 200 with an empty body.
    Empty,
    /// A redirect to a page on another host.
    Redirect,
    /// This status with a short text.
    Status(u16),
    /// The connection is closed without a response.
    Drop,
    /// No response.
    Stall,
}

impl GatewayManners {
    /// Every kind, with the statuses that scenarios use.
    pub const ALL: [Self; 19] = [
        Self::Ok,
        Self::Missing,
        Self::Lie,
        Self::Stranger,
        Self::Html,
        Self::Truncated,
        Self::Partial,
        Self::WithoutLeaves,
        Self::Endless,
        Self::EndlessTail,
        Self::RawOnly,
        Self::CarOnly,
        Self::Empty,
        Self::Redirect,
        Self::Status(429),
        Self::Status(500),
        Self::Status(503),
        Self::Drop,
        Self::Stall,
    ];
}

/// The label of the gateway's host.
impl fmt::Display for GatewayManners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok => f.write_str("ok"),
            Self::Missing => f.write_str("missing"),
            Self::Lie => f.write_str("lie"),
            Self::Stranger => f.write_str("stranger"),
            Self::Html => f.write_str("html"),
            Self::Truncated => f.write_str("truncated"),
            Self::Partial => f.write_str("partial"),
            Self::WithoutLeaves => f.write_str("without-leaves"),
            Self::Endless => f.write_str("endless"),
            Self::EndlessTail => f.write_str("endless-tail"),
            Self::RawOnly => f.write_str("raw-only"),
            Self::CarOnly => f.write_str("car-only"),
            Self::Empty => f.write_str("empty"),
            Self::Redirect => f.write_str("redirect"),
            Self::Status(code) => write!(f, "status-{code}"),
            Self::Drop => f.write_str("drop"),
            Self::Stall => f.write_str("stall"),
        }
    }
}

/// The blocks of a sandbox, and the faults of some blocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    blocks: Blocks,
    /// Blocks to which every gateway responds in this way.
    manners: HashMap<ContentId, GatewayManners>,
}

impl Store {
    /// Adds blocks to which every gateway responds in this way.
    pub(crate) fn add(&mut self, blocks: Blocks, manners: GatewayManners) {
        if manners != GatewayManners::Ok {
            self.manners.extend(blocks.keys().map(|cid| (*cid, manners)));
        }
        self.blocks.extend(blocks);
    }

    /// The response of a gateway with `manners` to a request below `/ipfs/`.
    pub(crate) fn answer(&self, manners: GatewayManners, request: &Request<()>) -> Reply {
        let Some((cid, path)) = asked_for(request.uri().path()) else { return web::html(StatusCode::BAD_REQUEST) };
        let own = self.manners.get(&cid).copied();
        let manners = if manners == GatewayManners::Ok { own.unwrap_or_default() } else { manners };
        let raw = match format(request) {
            Some(Format::Raw) if path.is_empty() => true,
            Some(Format::Car) => false,
            _ => return web::html(StatusCode::NOT_ACCEPTABLE),
        };
        match manners {
            GatewayManners::Missing => return web::html(StatusCode::NOT_FOUND),
            GatewayManners::Html => return web::html(StatusCode::OK),
            GatewayManners::Endless => return web::endless(if raw { RAW } else { CAR }),
            GatewayManners::Empty => return web::bytes(if raw { RAW } else { CAR }, Bytes::new()),
            GatewayManners::Redirect => return web::redirect("https://cards.sandbox.example/elsewhere"),
            GatewayManners::Status(code) => {
                return web::html(StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR));
            }
            GatewayManners::Drop => return Reply::Drop,
            GatewayManners::Stall => return Reply::Stall,
            GatewayManners::WithoutLeaves if raw && cid.is_raw() => {
                return web::html(StatusCode::SERVICE_UNAVAILABLE);
            }
            GatewayManners::RawOnly if !raw => return web::html(StatusCode::NOT_ACCEPTABLE),
            GatewayManners::CarOnly | GatewayManners::Partial | GatewayManners::EndlessTail if raw => {
                return web::html(StatusCode::NOT_ACCEPTABLE);
            }
            _ => {}
        }
        if raw { self.block(manners, &cid) } else { self.car(manners, cid, &path) }
    }

    fn block(&self, manners: GatewayManners, cid: &ContentId) -> Reply {
        let Some(block) = self.get(cid) else { return web::html(StatusCode::NOT_FOUND) };
        match manners {
            GatewayManners::Lie => web::bytes(RAW, changed(block)),
            GatewayManners::Stranger => web::bytes(RAW, Bytes::from_static(b"something else")),
            GatewayManners::Truncated => web::truncated(RAW, block),
            _ => web::bytes(RAW, block.clone()),
        }
    }

    fn car(&self, manners: GatewayManners, root: ContentId, path: &ContentPath) -> Reply {
        let Some(mut blocks) = self.along(root, path) else { return web::html(StatusCode::NOT_FOUND) };
        match manners {
            GatewayManners::Lie => blocks.iter_mut().for_each(|(_, block)| *block = changed(block)),
            GatewayManners::Stranger => {
                let stranger = Bytes::from_static(b"something else");
                blocks = vec![(ContentId::raw_of(&stranger), stranger)];
            }
            GatewayManners::Partial => blocks.truncate(blocks.len() / 2),
            GatewayManners::WithoutLeaves => blocks.retain(|(cid, _)| !cid.is_raw()),
            _ => {}
        }
        let car = Bytes::from(build::car(&root, blocks.iter().map(|(cid, block)| (cid, block))));
        match manners {
            GatewayManners::Truncated => web::truncated(CAR, &car),
            GatewayManners::EndlessTail => web::endless_after(CAR, car),
            _ => web::bytes(CAR, car),
        }
    }

    /// The blocks from `root` along `path` to the end of the file there, as in `dag-scope=entity`. `None` if the path
    /// does not exist or the first block is missing.
    fn along(&self, root: ContentId, path: &ContentPath) -> Option<Vec<(ContentId, Bytes)>> {
        let mut walk = Walk::new(root, path, Budget::cat());
        let mut blocks = Vec::new();
        while let Some(cid) = walk.wanted().copied() {
            let Some(block) = self.get(&cid) else { break };
            blocks.push((cid, block.clone()));
            if walk.supply(block.clone()).is_err() {
                break;
            }
        }
        match walk.finish() {
            Err(WalkError::NotFound { .. }) => None,
            _ if blocks.is_empty() => None,
            _ => Some(blocks),
        }
    }

    fn get(&self, cid: &ContentId) -> Option<&Bytes> {
        self.blocks.get(cid)
    }
}

/// The content in a URL path `/ipfs/CID` or `/ipfs/CID/path`.
fn asked_for(path: &str) -> Option<(ContentId, ContentPath)> {
    let (cid, path) = path.strip_prefix("/ipfs/").map(|rest| rest.split_once('/').unwrap_or((rest, "")))?;
    Some((ContentId::parse(cid).ok()?, ContentPath::parse(path.trim_end_matches('/')).ok()?))
}

enum Format {
    Raw,
    Car,
}

/// The format in the query or, if there is none, in the `Accept` header.
fn format(request: &Request<()>) -> Option<Format> {
    let query: BTreeMap<_, _> = url::form_urlencoded::parse(request.uri().query().unwrap_or("").as_bytes()).collect();
    let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    match query.get("format").map(AsRef::as_ref) {
        Some("raw") => Some(Format::Raw),
        Some("car") => Some(Format::Car),
        Some(_) => None,
        None if accept.starts_with(CAR) => Some(Format::Car),
        None if accept.starts_with(RAW) => Some(Format::Raw),
        None => None,
    }
}

/// `block` with its last byte changed.
fn changed(block: &Bytes) -> Bytes {
    let mut bytes = block.to_vec();
    match bytes.last_mut() {
        Some(last) => *last ^= 1,
        None => bytes.push(0),
    }
    Bytes::from(bytes)
}
