//! Names in ENSv2 under the daemon: a relinked record, a deleted name and a migration each close the gate at the next
//! head, and heads that change nothing confirm a migrated name.

use clresolve_sandbox::chain::{Ensv1Remnant, SandboxRpcFault};

use crate::hostile::heads::{GOOD, OTHER, Stage, good, parsed, quorum};

const CHILD: &str = "child.wild.eth";
const PARENT: &str = "wild.eth";

/// The child of a parent whose wildcard resolver answers for every other name below it.
const WILDCARD: &str = "a.wild.eth";

/// The definition of an agent in ENSv2, with these traces in ENSv1.
fn migrated(name: &str, traces: &str) -> String {
    format!("{}chain.migrated = \"{traces}\"\n", good(name))
}

fn wildcard() -> String {
    format!("{}chain.resolver = \"parent-wildcard\"\n", good(WILDCARD))
}

/// The resolver emits an event for the link, but none for the texts that change with it.
#[tokio::test(flavor = "multi_thread")]
async fn relinked_name_closes_the_gate() {
    for traces in ["cleared", "kept"] {
        let mut stage = Stage::new(&[GOOD, OTHER].map(|name| migrated(name, traces)).concat(), &[], |_| {}).await;
        stage.heat(&[GOOD, OTHER]).await;
        let block = stage
            .world
            .apply_in_new_block(|chain| chain.link_name_to_record_of(&parsed(GOOD), &parsed(OTHER)))
            .unwrap();
        stage.until_denied(GOOD).await;
        stage.stays_allowed(OTHER, &block).await;
    }
}

/// The deleted child still has records, from the parent's wildcard resolver, and is still in the ENSv1 registry.
#[tokio::test(flavor = "multi_thread")]
async fn deleted_name_is_not_that_of_its_parents_wildcard() {
    let agents = format!("{}{}chain.migrated = \"taken\"\n", migrated(CHILD, "kept"), wildcard());
    let mut stage = Stage::new(&agents, &[], |_| {}).await;
    stage.heat(&[CHILD, WILDCARD]).await;
    let block = stage.world.apply_in_new_block(|chain| chain.delete_from_ensv2(&parsed(CHILD))).unwrap();
    stage.until_denied(CHILD).await;
    stage.stays_allowed(WILDCARD, &block).await;
}

/// Only the ENSv1 registry changes. The name may therefore have another holder now.
#[tokio::test(flavor = "multi_thread")]
async fn migration_closes_the_gate_though_all_records_stay() {
    let agents = [good(OTHER), wildcard()].concat();
    let mut stage = Stage::new(&agents, &[SandboxRpcFault::None], quorum).await;
    stage.heat(&[OTHER, WILDCARD]).await;
    let block =
        stage.world.apply_in_new_block(|chain| chain.migrate_to_ensv2(&parsed(PARENT), Ensv1Remnant::Taken)).unwrap();
    stage.until_denied(WILDCARD).await;
    stage.stays_allowed(OTHER, &block).await;
    let verdict = stage.report(WILDCARD).await;
    let pending = |reason: &&serde_json::Value| reason["code"] == "record-pending";
    let pending = verdict["reasons"].as_array().unwrap().iter().find(pending).unwrap();
    assert_eq!(pending["observed"], "changed: the holder");
}
