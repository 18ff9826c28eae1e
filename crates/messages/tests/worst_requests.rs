//! Judges the most expensive requests of 256 KiB and checks their memory budget by counting allocations.
//!
//! `.ci/worst` checks their time budget by counting instructions.

#[path = "worst_requests/documents.rs"]
mod documents;

use allocation_counter::measure;
use clresolve_core::reason::ReasonCode;
use clresolve_messages::request::judge::MAX_FINDINGS;

use documents::World;
use documents::kinds::Kind;

/// Maximum number of bytes allocated at once while one question is parsed, judged and answered, not counting its own
/// text.
const MOST_BYTES: u64 = 16 << 20;

#[test]
fn every_worst_request_stays_within_16_mib() {
    let world = World::new();
    for kind in Kind::ALL {
        let question = kind.question("agent.eth", "sum");
        let mut found = None;
        let peak = measure(|| found = Some(world.judge_measured(&question))).bytes_max;
        println!("{peak} bytes: {kind:?}");
        assert!(peak <= MOST_BYTES, "{kind:?}: {peak} bytes");
        let found = found.expect("it was judged");
        let codes: Vec<_> = found.findings.iter().map(|finding| finding.code).collect();
        assert!(!codes.contains(&ReasonCode::RequestTooComplex), "{kind:?} is refused before the dear part: {codes:?}");
        assert_eq!(codes.contains(&ReasonCode::RequestDuplicateKey), kind == Kind::Twice, "{kind:?}: {codes:?}");
        if matches!(kind, Kind::Numbers | Kind::Members | Kind::Refused | Kind::Objects | Kind::Unknown) {
            assert!(codes.len() >= MAX_FINDINGS, "{kind:?}: {} findings", codes.len());
        }
    }
}
