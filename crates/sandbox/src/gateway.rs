//! The trustless IPFS gateways of a sandbox: raw blocks and CARs, and every way in which a gateway can fail.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use bytes::Bytes;
use hyper::header::ACCEPT;
use hyper::{Request, StatusCode};
use serde::Deserialize;

use super::web::{self, HostReaction};
use clresolve_ipfs::build::{self, BlocksByCid};
use clresolve_ipfs::{ContentId, DagWalk, DagWalkBudget, DagWalkError, UnixFsPath};

/// Media type of one block.
const RAW: &str = "application/vnd.ipld.raw";

/// Media type of a CAR.
const CAR: &str = "application/vnd.ipld.car";

/// How a gateway responds to requests for existing blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IpfsGatewayBehaviour {
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

impl IpfsGatewayBehaviour {
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
impl fmt::Display for IpfsGatewayBehaviour {
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
pub(crate) struct SandboxBlockStore {
    blocks: BlocksByCid,
    /// Blocks to which every gateway responds in this way.
    behaviour: HashMap<ContentId, IpfsGatewayBehaviour>,
}

impl SandboxBlockStore {
    /// Adds blocks to which every gateway responds in this way.
    pub(crate) fn add_blocks(&mut self, blocks: BlocksByCid, behaviour: IpfsGatewayBehaviour) {
        if behaviour != IpfsGatewayBehaviour::Ok {
            self.behaviour.extend(blocks.keys().map(|cid| (*cid, behaviour)));
        }
        self.blocks.extend(blocks);
    }

    /// The response of a gateway with `behaviour` to a request below `/ipfs/`.
    pub(crate) fn answer_ipfs_request(&self, behaviour: IpfsGatewayBehaviour, request: &Request<()>) -> HostReaction {
        let Some((cid, path)) = parse_ipfs_path(request.uri().path()) else {
            return web::html_reaction(StatusCode::BAD_REQUEST);
        };
        let own = self.behaviour.get(&cid).copied();
        let behaviour = if behaviour == IpfsGatewayBehaviour::Ok { own.unwrap_or_default() } else { behaviour };
        let raw = match requested_format(request) {
            Some(IpfsResponseFormat::Raw) if path.is_empty() => true,
            Some(IpfsResponseFormat::Car) => false,
            _ => return web::html_reaction(StatusCode::NOT_ACCEPTABLE),
        };
        match behaviour {
            IpfsGatewayBehaviour::Missing => return web::html_reaction(StatusCode::NOT_FOUND),
            IpfsGatewayBehaviour::Html => return web::html_reaction(StatusCode::OK),
            IpfsGatewayBehaviour::Endless => return web::endless_reaction(if raw { RAW } else { CAR }),
            IpfsGatewayBehaviour::Empty => return web::bytes_reaction(if raw { RAW } else { CAR }, Bytes::new()),
            IpfsGatewayBehaviour::Redirect => return web::redirect_reaction("https://cards.sandbox.example/elsewhere"),
            IpfsGatewayBehaviour::Status(code) => {
                return web::html_reaction(StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR));
            }
            IpfsGatewayBehaviour::Drop => return HostReaction::Drop,
            IpfsGatewayBehaviour::Stall => return HostReaction::Stall,
            IpfsGatewayBehaviour::WithoutLeaves if raw && cid.is_raw() => {
                return web::html_reaction(StatusCode::SERVICE_UNAVAILABLE);
            }
            IpfsGatewayBehaviour::RawOnly if !raw => return web::html_reaction(StatusCode::NOT_ACCEPTABLE),
            IpfsGatewayBehaviour::CarOnly | IpfsGatewayBehaviour::Partial | IpfsGatewayBehaviour::EndlessTail
                if raw =>
            {
                return web::html_reaction(StatusCode::NOT_ACCEPTABLE);
            }
            _ => {}
        }
        if raw { self.block_response(behaviour, &cid) } else { self.car_response(behaviour, cid, &path) }
    }

    fn block_response(&self, behaviour: IpfsGatewayBehaviour, cid: &ContentId) -> HostReaction {
        let Some(block) = self.get(cid) else { return web::html_reaction(StatusCode::NOT_FOUND) };
        match behaviour {
            IpfsGatewayBehaviour::Lie => web::bytes_reaction(RAW, corrupted_block(block)),
            IpfsGatewayBehaviour::Stranger => web::bytes_reaction(RAW, Bytes::from_static(b"something else")),
            IpfsGatewayBehaviour::Truncated => web::truncated_reaction(RAW, block),
            _ => web::bytes_reaction(RAW, block.clone()),
        }
    }

    fn car_response(&self, behaviour: IpfsGatewayBehaviour, root: ContentId, path: &UnixFsPath) -> HostReaction {
        let Some(mut blocks) = self.blocks_along_path(root, path) else {
            return web::html_reaction(StatusCode::NOT_FOUND);
        };
        match behaviour {
            IpfsGatewayBehaviour::Lie => blocks.iter_mut().for_each(|(_, block)| *block = corrupted_block(block)),
            IpfsGatewayBehaviour::Stranger => {
                let stranger = Bytes::from_static(b"something else");
                blocks = vec![(ContentId::from_raw_block(&stranger), stranger)];
            }
            IpfsGatewayBehaviour::Partial => blocks.truncate(blocks.len() / 2),
            IpfsGatewayBehaviour::WithoutLeaves => blocks.retain(|(cid, _)| !cid.is_raw()),
            _ => {}
        }
        let car = Bytes::from(build::write_car(&root, blocks.iter().map(|(cid, block)| (cid, block))));
        match behaviour {
            IpfsGatewayBehaviour::Truncated => web::truncated_reaction(CAR, &car),
            IpfsGatewayBehaviour::EndlessTail => web::endless_reaction_after(CAR, car),
            _ => web::bytes_reaction(CAR, car),
        }
    }

    /// The blocks from `root` along `path` to the end of the file there, as in `dag-scope=entity`. `None` if the path
    /// does not exist or the first block is missing.
    fn blocks_along_path(&self, root: ContentId, path: &UnixFsPath) -> Option<Vec<(ContentId, Bytes)>> {
        let mut walk = DagWalk::new(root, path, DagWalkBudget::for_cat_command());
        let mut blocks = Vec::new();
        while let Some(cid) = walk.wanted_block().copied() {
            let Some(block) = self.get(&cid) else { break };
            blocks.push((cid, block.clone()));
            if walk.supply_block(block.clone()).is_err() {
                break;
            }
        }
        match walk.finish() {
            Err(DagWalkError::NotFound { .. }) => None,
            _ if blocks.is_empty() => None,
            _ => Some(blocks),
        }
    }

    fn get(&self, cid: &ContentId) -> Option<&Bytes> {
        self.blocks.get(cid)
    }
}

/// The content in a URL path `/ipfs/CID` or `/ipfs/CID/path`.
fn parse_ipfs_path(path: &str) -> Option<(ContentId, UnixFsPath)> {
    let (cid, path) = path.strip_prefix("/ipfs/").map(|rest| rest.split_once('/').unwrap_or((rest, "")))?;
    Some((ContentId::parse(cid).ok()?, UnixFsPath::parse(path.trim_end_matches('/')).ok()?))
}

enum IpfsResponseFormat {
    Raw,
    Car,
}

/// The format in the query or, if there is none, in the `Accept` header.
fn requested_format(request: &Request<()>) -> Option<IpfsResponseFormat> {
    let query: BTreeMap<_, _> = url::form_urlencoded::parse(request.uri().query().unwrap_or("").as_bytes()).collect();
    let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    match query.get("format").map(AsRef::as_ref) {
        Some("raw") => Some(IpfsResponseFormat::Raw),
        Some("car") => Some(IpfsResponseFormat::Car),
        Some(_) => None,
        None if accept.starts_with(CAR) => Some(IpfsResponseFormat::Car),
        None if accept.starts_with(RAW) => Some(IpfsResponseFormat::Raw),
        None => None,
    }
}

/// `block` with its last byte changed.
fn corrupted_block(block: &Bytes) -> Bytes {
    let mut bytes = block.to_vec();
    match bytes.last_mut() {
        Some(last) => *last ^= 1,
        None => bytes.push(0),
    }
    Bytes::from(bytes)
}
