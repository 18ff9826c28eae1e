//! What is retrieved, and what came of it.

use std::time::Duration;

use bytes::Bytes;

use super::gateway::GatewayFault;
use crate::cid::{Budget, ContentId, ContentPath, Proven, WalkError, WalkedBlocks};

/// What to retrieve, and within which bounds.
#[derive(Clone, Copy, Debug)]
pub struct Want<'a> {
    /// The root.
    pub cid: ContentId,
    /// The way from the root to the file.
    pub path: &'a ContentPath,
    /// Bytes at hand from elsewhere (the card that `https` served), tried wherever a raw block is wanted.
    pub known: &'a [Bytes],
    /// Bounds of the walk.
    pub budget: Budget,
    /// Time over all gateways.
    pub total: Duration,
}

/// What came of a [`Want`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retrieval {
    /// How the walk ended.
    pub ended: Result<Proven, WalkError>,
    /// Gateways (labels) that sent a wrong block before the walk was over, and the block that was asked for.
    pub liars: Vec<(String, ContentId)>,
    /// Gateways (labels) that gave up or were not asked, in the order of the configuration. The liars are among them;
    /// those that were only slower than the winner are not.
    pub failures: Vec<(String, GatewayFault)>,
    /// Requests made; one that the guard refused counts too.
    pub requests: u32,
    /// The blocks that were proven on the way.
    pub blocks: WalkedBlocks,
}
