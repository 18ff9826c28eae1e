//! Restarts from the file with the verified state.

use std::fs;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use clresolve_core::reading::BlockSelector;
use tempfile::TempDir;

use super::beacon_chain::{BeaconChain, CHECKPOINT};
use super::client::{LoopbackGet, TestClock, client, config};
use super::server::{BeaconServer, Lie};
use crate::light_client::LightClient;
use crate::light_client::saved::{SavedStateError, load_saved_state};

const NOW: u64 = 300;

/// A folder with the file of a light client that was synchronized at [`NOW`].
async fn saved(chain: &BeaconChain) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let server = BeaconServer::start(chain, NOW, Lie::Nothing).await;
    let client = client(chain, &[&server], &TestClock::at(chain, NOW), Some(file(&folder)));
    client.fetch_verified_header(BlockSelector::Finalized).await.unwrap();
    folder
}

fn file(folder: &TempDir) -> std::path::PathBuf {
    folder.path().join("state/light-client")
}

/// Why the state in the file is not used at [`NOW`].
fn fault(chain: &BeaconChain, path: &Path) -> SavedStateError {
    let checkpoint = chain.block(CHECKPOINT).block_root();
    let loaded = load_saved_state(path, chain.spec.clone(), checkpoint, chain.spec.slot_start_time(NOW));
    loaded.map(drop).unwrap_err()
}

/// Whether a restart with this file needs the bootstrap.
async fn needs_bootstrap(chain: &BeaconChain, path: &Path, slot: u64) -> bool {
    let server = BeaconServer::start(chain, slot, Lie::Nothing).await;
    let client = client(chain, &[&server], &TestClock::at(chain, slot), Some(path.to_owned()));
    client.fetch_verified_header(BlockSelector::Finalized).await.unwrap();
    server.take_requests().iter().any(|request| request.starts_with("bootstrap"))
}

#[tokio::test]
async fn restart_continues_from_the_file() {
    let chain = BeaconChain::new();
    let folder = saved(&chain).await;
    assert!(!needs_bootstrap(&chain, &file(&folder), NOW + 100).await);
    let server = BeaconServer::start(&chain, NOW + 200, Lie::NoBootstrap).await;
    let client = client(&chain, &[&server], &TestClock::at(&chain, NOW + 200), Some(file(&folder)));
    assert_eq!(client.fetch_verified_header(BlockSelector::Latest).await.unwrap().slot(), NOW + 199);
}

#[cfg(unix)]
#[tokio::test]
async fn file_is_accessible_to_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    let chain = BeaconChain::new();
    let folder = saved(&chain).await;
    let mode = || fs::metadata(file(&folder)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o600);
    fs::set_permissions(file(&folder), fs::Permissions::from_mode(0o620)).unwrap();
    assert!(matches!(fault(&chain, &file(&folder)), SavedStateError::Writable));
    assert!(needs_bootstrap(&chain, &file(&folder), NOW).await, "others can write it");
    assert_eq!(mode(), 0o600, "it is replaced");
    assert_eq!(fs::read_dir(file(&folder).parent().unwrap()).unwrap().count(), 1, "no temporary file is left");
}

#[cfg(unix)]
#[tokio::test]
async fn only_a_regular_file_of_this_user_is_used() {
    let chain = BeaconChain::new();
    let folder = saved(&chain).await;
    let (path, good) = (file(&folder), folder.path().join("good"));
    if std::os::unix::fs::chown(&path, Some(1), None).is_ok() {
        assert!(matches!(fault(&chain, &path), SavedStateError::OtherOwner));
        std::os::unix::fs::chown(&path, Some(0), None).unwrap();
    }
    fs::rename(&path, &good).unwrap();
    std::os::unix::fs::symlink(&good, &path).unwrap();
    assert!(matches!(fault(&chain, &path), SavedStateError::Io(_)), "a link");
    fs::remove_file(&path).unwrap();
    assert!(std::process::Command::new("mkfifo").args(["-m", "600"]).arg(&path).status().unwrap().success());
    // In a thread, because opening a named pipe can wait forever.
    let (ended, outcome) = mpsc::channel();
    let pipe = (chain.clone(), path.clone());
    std::thread::spawn(move || ended.send(fault(&pipe.0, &pipe.1)));
    let fault = outcome.recv_timeout(Duration::from_secs(20)).expect("it does not block");
    assert!(matches!(fault, SavedStateError::NotRegular), "a named pipe: {fault}");
    assert!(needs_bootstrap(&chain, &path, NOW).await);
    assert!(!needs_bootstrap(&chain, &path, NOW).await, "it was replaced");
}

#[tokio::test]
async fn observer_never_writes_the_file() {
    let chain = BeaconChain::new();
    let folder = tempfile::tempdir().unwrap();
    let server = BeaconServer::start(&chain, NOW, Lie::Nothing).await;
    let config = config(&chain, &[&server], Some(file(&folder)));
    let observer = LightClient::new_read_only(config, Arc::new(LoopbackGet::new()), TestClock::at(&chain, NOW).clock());
    observer.fetch_verified_header(BlockSelector::Finalized).await.unwrap();
    assert!(!file(&folder).exists());
}

#[tokio::test]
async fn reload_continues_unless_the_checkpoint_is_another() {
    let chain = BeaconChain::new();
    let server = BeaconServer::start(&chain, NOW, Lie::Nothing).await;
    let clock = TestClock::at(&chain, NOW);
    let before = client(&chain, &[&server], &clock, None);
    before.fetch_verified_header(BlockSelector::Finalized).await.unwrap();
    let status = |config| {
        let reloaded = LightClient::new(config, Arc::new(LoopbackGet::new()), clock.clock());
        reloaded.adopt_progress(&before);
        reloaded.status()
    };
    let same = config(&chain, &[&server], None);
    assert_eq!(status(same.clone()).headers, before.status().headers);
    let mut other = same;
    other.checkpoint = alloy_primitives::B256::repeat_byte(1);
    assert_eq!(status(other).headers, None);
}

#[tokio::test]
async fn damaged_file_is_replaced() {
    const TOO_LONG: usize = 300 << 10;
    let chain = BeaconChain::new();
    let folder = saved(&chain).await;
    let path = file(&folder);
    let good = fs::read(&path).unwrap();
    let mut changed = good.clone();
    changed[100] ^= 1;
    for bytes in [changed, good[..good.len() / 2].to_vec(), Vec::new(), vec![0; TOO_LONG]] {
        let is_too_long = bytes.len() == TOO_LONG;
        fs::write(&path, bytes).unwrap();
        let fault = fault(&chain, &path);
        assert_eq!(matches!(fault, SavedStateError::TooLong), is_too_long, "{fault}");
        assert!(needs_bootstrap(&chain, &path, NOW).await);
        assert!(!needs_bootstrap(&chain, &path, NOW).await, "it was replaced");
    }
}

#[tokio::test]
async fn file_of_another_checkpoint_or_network_is_not_used() {
    let chain = BeaconChain::new();
    let folder = saved(&chain).await;
    let server = BeaconServer::start(&chain, NOW, Lie::Nothing).await;
    let clock = TestClock::at(&chain, NOW);
    let mut other = config(&chain, &[&server], Some(file(&folder)));
    other.checkpoint = alloy_primitives::B256::repeat_byte(1);
    let client = LightClient::new(other, Arc::new(LoopbackGet::new()), clock.clock());
    assert!(client.fetch_verified_header(BlockSelector::Finalized).await.is_err(), "no endpoint has that checkpoint");

    let mut network = BeaconChain::new();
    network.spec.genesis_validators_root = alloy_primitives::B256::repeat_byte(7);
    assert!(needs_bootstrap(&network, &file(&folder), NOW).await);
}

#[tokio::test]
async fn old_file_is_not_used() {
    const TWO_WEEKS: u64 = 14 * 24 * 60 * 60 / 6;
    let chain = BeaconChain::new();
    let folder = saved(&chain).await;
    let late = NOW + TWO_WEEKS + 1;
    let server = BeaconServer::start(&chain, late, Lie::Nothing).await;
    let client = client(&chain, &[&server], &TestClock::at(&chain, late), Some(file(&folder)));
    assert!(client.fetch_verified_header(BlockSelector::Finalized).await.is_err());
    assert!(server.take_requests()[0].starts_with("bootstrap"));
}
