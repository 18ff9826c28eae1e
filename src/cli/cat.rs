//! `cat`: writes IPFS content, each block of which is verified.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use clresolve_core::text::Foreign;
use clresolve_core::uri;
use clresolve_ipfs::{Budget, CidError, ContentId, ContentPath, WalkError, cat_car};

use super::args::CatArgs;
use super::exit::Exit;
use super::output::Output;
use super::progress::Progress;
use super::world::World;

/// Maximum size of a CAR file, in bytes: the read limit of [`Budget::cat`], and the same amount of other blocks.
const MAX_CAR_BYTES: u64 = 256 << 20;

/// The requested content: `CID` or `CID/path`, optionally after `ipfs://` or `/ipfs/`. Names in the path are literal: a
/// `%` is a `%`.
#[derive(Debug)]
struct Target {
    root: ContentId,
    path: ContentPath,
}

impl Target {
    fn parse(text: &str) -> Result<Self, Unproven> {
        let text = uri::strip_scheme(text, "ipfs").or_else(|| text.strip_prefix("/ipfs/")).unwrap_or(text);
        let (cid, path) = text.split_once('/').unwrap_or((text, ""));
        let root = ContentId::parse(cid).map_err(|e| Unproven::of_cid(&e))?;
        let path = ContentPath::literal(path).map_err(|e| Unproven::of_walk(&e.into()))?;
        Ok(Self { root, path })
    }
}

/// Why there are no bytes: a stable class, a message, and the code.
#[derive(Debug, PartialEq, Eq)]
struct Unproven {
    class: &'static str,
    message: String,
    exit: Exit,
}

impl Unproven {
    fn of_cid(error: &CidError) -> Self {
        let class = match error {
            CidError::Malformed(_) => "bad-cid",
            CidError::HashForbidden(_) => "hash-not-allowed",
        };
        Self { class, message: error.to_string(), exit: Exit::Untrusted }
    }

    fn of_walk(error: &WalkError) -> Self {
        let exit = if error.is_final() { Exit::Untrusted } else { Exit::Indeterminate };
        Self { class: error.class(), message: error.to_string(), exit }
    }
}

pub(super) fn run(args: CatArgs) -> anyhow::Result<Exit> {
    let output = Output::new(&args.out)?;
    let bytes = match (Target::parse(&args.target), &args.car) {
        (Err(refusal), _) => Err(refusal),
        (Ok(target), Some(car)) => from_car(target, read_car(car)?),
        (Ok(target), None) => {
            let mut fetched = None;
            let exit = super::runtime::run_async(async {
                fetched = Some(from_gateways(&target, &args).await?);
                Ok(Exit::Trusted)
            })?;
            match fetched {
                Some(bytes) => bytes,
                None => return Ok(exit),
            }
        }
    };
    match bytes {
        Ok(bytes) => {
            output.write_whole(&bytes)?;
            Ok(Exit::Trusted)
        }
        Err(refusal) => {
            anstream::eprintln!("{}: {}", refusal.class, Foreign::new(&refusal.message));
            Ok(refusal.exit)
        }
    }
}

async fn from_gateways(target: &Target, args: &CatArgs) -> anyhow::Result<Result<Bytes, Unproven>> {
    let world = World::open(&args.world).await?;
    let progress = Progress::start(format!("fetching {}", target.root));
    let walked = world.resolver.cat(&target.root, &target.path).await.walked;
    drop(progress);
    Ok(match (walked.class(), walked.bytes()) {
        (None, Some(bytes)) => Ok(bytes.clone()),
        (class, _) => {
            let class = class.unwrap_or("incomplete");
            let exit = if class == "incomplete" { Exit::Indeterminate } else { Exit::Untrusted };
            Err(Unproven { class, message: walked.to_string(), exit })
        }
    })
}

fn from_car(target: Target, car: Bytes) -> Result<Bytes, Unproven> {
    let proven = cat_car(target.root, &target.path, Budget::cat(), car).map_err(|e| Unproven::of_walk(&e))?;
    Ok(proven.bytes)
}

fn read_car(path: &Path) -> anyhow::Result<Bytes> {
    let cannot = || format!("cannot read {}", path.display());
    let file = std::fs::File::open(path).with_context(cannot)?;
    let mut bytes = Vec::new();
    file.take(MAX_CAR_BYTES + 1).read_to_end(&mut bytes).with_context(cannot)?;
    if bytes.len() as u64 > MAX_CAR_BYTES {
        bail!("{} has more than {MAX_CAR_BYTES} bytes", path.display());
    }
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: &str = "bafkreibm6jg3ux5qumhcn2b3flc3tyu6dmlb4xa7u5bf44yegnrjhc4yeq";

    #[test]
    fn a_target_is_a_cid_and_a_path() {
        for text in [HELLO.to_owned(), format!("ipfs://{HELLO}"), format!("/ipfs/{HELLO}")] {
            let target = Target::parse(&text).unwrap();
            assert!(target.path.is_empty());
            assert_eq!(target.root.to_string(), HELLO);
        }
        let target = Target::parse(&format!("{HELLO}/a/%20b")).unwrap();
        assert_eq!(target.path.segments(), ["a", "%20b"]);
    }

    #[test]
    fn what_is_no_target_has_a_class() {
        let class = |text: &str| Target::parse(text).unwrap_err();
        assert_eq!((class("nonsense").class, class("nonsense").exit), ("bad-cid", Exit::Untrusted));
        assert_eq!(class(&format!("{HELLO}/a/../b")).class, "bad-path");
    }
}
