//! The input and the result of a retrieval.

use std::time::Duration;

use bytes::Bytes;
use clresolve_ipfs::{ContentId, DagWalkBudget, DagWalkError, UnixFsPath, VerifiedBlocks, VerifiedFile};

use super::gateway::IpfsGatewayFault;

/// What to retrieve, and within which limits.
#[derive(Clone, Copy, Debug)]
pub struct IpfsRetrievalRequest<'a> {
    /// The root CID.
    pub cid: ContentId,
    /// The path from the root to the file.
    pub path: &'a UnixFsPath,
    /// Bytes from another source (the card that `https` served). They are tried for each raw block that the walk wants.
    pub known: &'a [Bytes],
    /// Limits of the walk.
    pub budget: DagWalkBudget,
    /// Time limit over all gateways.
    pub total: Duration,
}

/// The result of an [`IpfsRetrievalRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpfsRetrieval {
    /// How the walk ended.
    pub ended: Result<VerifiedFile, DagWalkError>,
    /// Gateways (labels) that sent a wrong block before the walk was complete, each with the requested block.
    pub liars: Vec<(String, ContentId)>,
    /// Gateways (labels) that failed or were not asked, in the order of the configuration. Gateways that sent a wrong
    /// block are included. Those that were only slower than the winner are not.
    pub failures: Vec<(String, IpfsGatewayFault)>,
    /// Number of requests, including any that the guard refused.
    pub requests: u32,
    /// The blocks that were proven along the path.
    pub blocks: VerifiedBlocks,
}
