//! A light client beside the chain.

use std::sync::Arc;

use clresolve_beacon::{ChainSpec, LightClientError, LightClientStore};
use clresolve_core::reading::ChainBlock;
use jiff::{SignedDuration, Timestamp};

use super::behaviour::SandboxBeaconBehaviour;
use super::chain::LazySandboxBeaconChain;
use crate::chain::{SandboxChain, SandboxChainBuilder};

const START: Timestamp = Timestamp::constant(1_800_000_000, 0);

/// As in a running sandbox.
const FINALITY: SignedDuration = SignedDuration::from_mins(13);
const NEWEST: SignedDuration = SignedDuration::from_secs(12);

/// An EVM chain with a newest block that is not final, as [`crate::RunningSandbox`] builds it.
#[derive(Clone)]
struct Evm {
    finalized: SandboxChainBuilder,
    newest: SandboxChainBuilder,
}

impl Evm {
    fn new(now: Timestamp) -> Self {
        let finalized = SandboxChainBuilder::new().unwrap();
        let mut evm = Self { newest: finalized.clone(), finalized };
        evm.grow(now);
        evm
    }

    fn grow(&mut self, now: Timestamp) {
        self.finalized.seal_block(now - FINALITY).unwrap();
        self.finalized.finalize_newest_block().unwrap();
        self.newest = self.finalized.clone();
        self.newest.seal_block(now - NEWEST).unwrap();
    }

    /// Seals a block that is one second later than the newest one.
    fn write(&mut self) {
        let next = self.chain().latest().timestamp + SignedDuration::from_secs(1);
        self.newest.seal_block(next).unwrap();
    }

    fn chain(&self) -> Arc<SandboxChain> {
        Arc::new(self.newest.build().unwrap())
    }
}

/// A client that asks as a beacon API client does: for updates, then for the newest headers.
struct Client(LightClientStore);

impl Client {
    fn new(chain: &mut LazySandboxBeaconChain) -> Self {
        let checkpoint = chain.checkpoint_root();
        let bootstrap = chain.bootstrap(checkpoint).unwrap();
        Self(LightClientStore::from_bootstrap(ChainSpec::sandbox(), checkpoint, bootstrap).unwrap())
    }

    fn sync(
        &mut self,
        chain: &mut LazySandboxBeaconChain,
        now: Timestamp,
        behaviour: SandboxBeaconBehaviour,
    ) -> Result<(), LightClientError> {
        let slot = slot(now);
        let period = self.0.spec().period_at_slot(slot);
        while self.0.next_update_period() <= period {
            let wanted = self.0.next_update_period();
            let Some(update) = chain.light_client_update(wanted, now, behaviour) else { break };
            self.0.process_update(&update, slot)?;
            assert!(self.0.next_update_period() > wanted, "an update brings the next committee");
        }
        self.0.process_finality_update(&chain.finality_update(behaviour), slot)?;
        self.0.process_optimistic_update(&chain.optimistic_update(behaviour), slot)?;
        Ok(())
    }

    /// Syncs, and compares the verified headers with the blocks of the EVM chain.
    fn follow(&mut self, chain: &mut LazySandboxBeaconChain, evm: &SandboxChain, now: Timestamp) {
        self.sync(chain, now, SandboxBeaconBehaviour::Honest).unwrap();
        let observed = [self.0.finalized_header(), self.0.optimistic_header()].map(|header| header.block_hash());
        assert_eq!(observed, [evm.finalized(), evm.latest()].map(|block: ChainBlock| block.hash));
    }
}

fn slot(now: Timestamp) -> u64 {
    ChainSpec::sandbox().slot_at_time(u64::try_from(now.as_second()).unwrap())
}

#[test]
fn light_client_follows_a_growing_chain() {
    let mut now = START;
    let mut evm = Evm::new(now);
    let mut chain = LazySandboxBeaconChain::new(evm.chain());
    let mut client = Client::new(&mut chain);
    for round in 0..40 {
        chain.follow_chain(evm.chain());
        client.follow(&mut chain, &evm.chain(), now);
        for _ in 0..round % 4 {
            evm.write();
            chain.follow_chain(evm.chain());
            client.follow(&mut chain, &evm.chain(), now);
        }
        now += SignedDuration::from_secs(300);
        evm.grow(now);
    }
    chain.follow_chain(evm.chain());
    Client::new(&mut chain).follow(&mut chain, &evm.chain(), now);
}

#[test]
fn light_client_follows_through_pauses() {
    for pause in [1, 20, 1_000, 2_048, 5_000, 86_400] {
        let mut now = START;
        let mut evm = Evm::new(now);
        let mut chain = LazySandboxBeaconChain::new(evm.chain());
        let mut client = Client::new(&mut chain);
        client.follow(&mut chain, &evm.chain(), now);
        for _ in 0..3 {
            now += SignedDuration::from_secs(pause);
            client.follow(&mut chain, &evm.chain(), now);
            evm.write();
            chain.follow_chain(evm.chain());
            client.follow(&mut chain, &evm.chain(), now);
            evm.grow(now + SignedDuration::from_secs(20));
            now += SignedDuration::from_secs(20);
            chain.follow_chain(evm.chain());
            client.follow(&mut chain, &evm.chain(), now);
            Client::new(&mut chain).follow(&mut chain, &evm.chain(), now);
        }
    }
}

#[test]
fn light_client_follows_from_any_slot_of_a_period() {
    for offset in [0, 1, 2, 3, 779, 780, 781, 782, 2_046, 2_047] {
        let now = START + SignedDuration::from_secs(offset - START.as_second() % 2_048);
        let mut evm = Evm::new(now);
        let mut chain = LazySandboxBeaconChain::new(evm.chain());
        let mut client = Client::new(&mut chain);
        client.follow(&mut chain, &evm.chain(), now);
        evm.write();
        chain.follow_chain(evm.chain());
        client.follow(&mut chain, &evm.chain(), now);
        client.follow(&mut chain, &evm.chain(), now + SignedDuration::from_secs(4_096));
    }
}

#[test]
fn light_client_follows_a_chain_whose_newest_block_is_final() {
    let mut builder = SandboxChainBuilder::new().unwrap();
    builder.seal_block(START).unwrap();
    let mut chain = LazySandboxBeaconChain::new(Arc::new(builder.build().unwrap()));
    let mut client = Client::new(&mut chain);
    for seconds in [10, 12, 5_000] {
        let evm = Arc::new(builder.build().unwrap());
        chain.follow_chain(Arc::clone(&evm));
        client.follow(&mut chain, &evm, START + SignedDuration::from_secs(seconds + 10));
        builder.seal_block(START + SignedDuration::from_secs(seconds)).unwrap();
    }
}

#[test]
fn each_liar_is_refused() {
    let evm = Evm::new(START);
    let mut chain = LazySandboxBeaconChain::new(evm.chain());
    for behaviour in SandboxBeaconBehaviour::LIARS {
        let refused = Client::new(&mut chain).sync(&mut chain, START, behaviour);
        let is_expected = match behaviour {
            SandboxBeaconBehaviour::LowParticipation => {
                matches!(refused, Err(LightClientError::Participation { participants: 21, size: 32 }))
            }
            SandboxBeaconBehaviour::OtherCommittee | SandboxBeaconBehaviour::OtherFork => {
                refused == Err(LightClientError::Signature)
            }
            SandboxBeaconBehaviour::ForgedFinality => refused == Err(LightClientError::FinalityBranch),
            SandboxBeaconBehaviour::ForgedExecution => matches!(refused, Err(LightClientError::ExecutionBranch { .. })),
            SandboxBeaconBehaviour::Replayed => matches!(refused, Err(LightClientError::PeriodPast { .. })),
            SandboxBeaconBehaviour::Equivocation => matches!(refused, Err(LightClientError::Equivocation { .. })),
            SandboxBeaconBehaviour::Honest | SandboxBeaconBehaviour::Endless | SandboxBeaconBehaviour::Silent => {
                refused.is_ok()
            }
        };
        assert!(is_expected, "{behaviour:?}: {refused:?}");
    }
}

#[test]
fn unknown_roots_and_coming_periods_have_no_data() {
    let mut chain = LazySandboxBeaconChain::new(Evm::new(START).chain());
    let period = ChainSpec::sandbox().period_at_slot(slot(START));
    let mut has_update = |period| chain.light_client_update(period, START, SandboxBeaconBehaviour::Honest).is_some();
    assert!(!has_update(period + 1) && !has_update(period - 2) && has_update(period - 1));
    assert_eq!(chain.bootstrap(alloy_primitives::B256::ZERO), None);
}

/// Prints how long the first use takes, and one request.
#[test]
#[ignore = "a measurement"]
fn cost_of_the_first_use() {
    let evm = Evm::new(START).chain();
    for round in 0..3 {
        let began = std::time::Instant::now();
        let mut chain = LazySandboxBeaconChain::new(Arc::clone(&evm));
        chain.checkpoint_root();
        let checkpoint = began.elapsed();
        chain.finality_update(SandboxBeaconBehaviour::Honest);
        println!("round {round}: checkpoint {checkpoint:?}, finality update {:?}", began.elapsed() - checkpoint);
    }
}
