//! `cat`: writes IPFS content, each block of which is verified.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use clresolve_core::uri;
use clresolve_ipfs::{CidError, ContentId, DagWalkBudget, DagWalkError, UnixFsPath, read_file_from_car};

use super::args::CatArguments;
use super::exit::{ContentRefusal, ExitStatus};
use super::output::OutputSink;
use super::progress::ProgressLine;
use super::world::CommandContext;

/// Maximum size of a CAR file, in bytes: the read limit of [`DagWalkBudget::for_cat_command`], and the same amount of
/// other blocks.
const MAX_CAR_BYTES: u64 = 256 << 20;

/// The requested content: `CID` or `CID/path`, optionally after `ipfs://` or `/ipfs/`. Names in the path are literal: a
/// `%` is a `%`.
#[derive(Debug)]
struct IpfsPath {
    root: ContentId,
    path: UnixFsPath,
}

impl IpfsPath {
    fn parse(text: &str) -> Result<Self, ContentRefusal> {
        let text = uri::strip_scheme(text, "ipfs").or_else(|| text.strip_prefix("/ipfs/")).unwrap_or(text);
        let (cid, path) = text.split_once('/').unwrap_or((text, ""));
        let root = ContentId::parse(cid)?;
        let path = UnixFsPath::parse_literal(path).map_err(DagWalkError::from)?;
        Ok(Self { root, path })
    }
}

impl From<CidError> for ContentRefusal {
    fn from(error: CidError) -> Self {
        let class = match error {
            CidError::Malformed(_) => "bad-cid",
            CidError::HashForbidden(_) => "hash-not-allowed",
        };
        Self::new(class, error.to_string())
    }
}

impl From<DagWalkError> for ContentRefusal {
    fn from(error: DagWalkError) -> Self {
        let exit = if error.is_final() { ExitStatus::Untrusted } else { ExitStatus::Indeterminate };
        Self { class: error.error_class_name(), message: error.to_string(), exit }
    }
}

pub(super) fn run(args: CatArguments) -> anyhow::Result<ExitStatus> {
    let output = OutputSink::new(&args.out)?;
    let bytes = match (IpfsPath::parse(&args.target), &args.car) {
        (Err(refusal), _) => Err(refusal),
        (Ok(target), Some(car)) => read_car_content(target, read_car_file(car)?),
        (Ok(target), None) => {
            let mut fetched = None;
            let exit = super::runtime::run_async_until_interrupt(async {
                fetched = Some(fetch_from_ipfs_gateways(&target, &args).await?);
                Ok(ExitStatus::Trusted)
            })?;
            match fetched {
                Some(bytes) => bytes,
                None => return Ok(exit),
            }
        }
    };
    match bytes {
        Ok(bytes) => {
            output.write_all_and_finish(&bytes)?;
            Ok(ExitStatus::Trusted)
        }
        Err(refusal) => Ok(refusal.print_and_get_exit_status()),
    }
}

async fn fetch_from_ipfs_gateways(
    target: &IpfsPath,
    args: &CatArguments,
) -> anyhow::Result<Result<Bytes, ContentRefusal>> {
    let world = CommandContext::open(&args.world).await?;
    let progress = ProgressLine::start(format!("fetching {}", target.root));
    let walked = world.resolver.ipfs_cat(&target.root, &target.path).await.walked;
    drop(progress);
    Ok(match (walked.error_class(), walked.bytes()) {
        (None, Some(bytes)) => Ok(bytes.clone()),
        (class, _) => {
            let class = class.unwrap_or("incomplete");
            let exit = if class == "incomplete" { ExitStatus::Indeterminate } else { ExitStatus::Untrusted };
            Err(ContentRefusal { class, message: walked.to_string(), exit })
        }
    })
}

fn read_car_content(target: IpfsPath, car: Bytes) -> Result<Bytes, ContentRefusal> {
    Ok(read_file_from_car(target.root, &target.path, DagWalkBudget::for_cat_command(), car)?.bytes)
}

fn read_car_file(path: &Path) -> anyhow::Result<Bytes> {
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
            let target = IpfsPath::parse(&text).unwrap();
            assert!(target.path.is_empty());
            assert_eq!(target.root.to_string(), HELLO);
        }
        let target = IpfsPath::parse(&format!("{HELLO}/a/%20b")).unwrap();
        assert_eq!(target.path.segments(), ["a", "%20b"]);
    }

    #[test]
    fn what_is_no_target_has_a_class() {
        let class = |text: &str| IpfsPath::parse(text).unwrap_err();
        assert_eq!((class("nonsense").class, class("nonsense").exit), ("bad-cid", ExitStatus::Untrusted));
        assert_eq!(class(&format!("{HELLO}/a/../b")).class, "bad-path");
    }
}
