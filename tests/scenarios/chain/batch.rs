//! Names that are read together: each is told what it is told alone, whoever its mates are.

use std::collections::HashMap;

use clresolve_core::reading::NameReading;
use futures_util::future::{join, join_all};

use super::*;

/// As many names as one call takes.
const FULL: usize = 20;

/// A time limit that a busy machine does not reach: what is late is asked again, and counted.
const UNHURRIED: Duration = Duration::from_secs(240);

const ALL_MODES: [HostileResolverMode; 17] = [
    HostileResolverMode::Aliased,
    HostileResolverMode::BadLength,
    HostileResolverMode::BadOffset,
    HostileResolverMode::BadUtf8,
    HostileResolverMode::Burn,
    HostileResolverMode::BurnInterface,
    HostileResolverMode::Empty,
    HostileResolverMode::ExtendedGarbage,
    HostileResolverMode::Garbage,
    HostileResolverMode::Huge,
    HostileResolverMode::Invalid,
    HostileResolverMode::Loop,
    HostileResolverMode::NoUrls,
    HostileResolverMode::Revert,
    HostileResolverMode::RevertHuge,
    HostileResolverMode::Sender,
    HostileResolverMode::Ssrf,
];

fn misbehaving(text: &str, mode: HostileResolverMode, arg: &str) -> SandboxNameRegistration {
    registration(text, EnsResolverKind::Hostile { mode, arg: arg.to_owned() })
}

/// Honest names of every kind.
fn honest() -> Vec<SandboxNameRegistration> {
    let bare = |text: &str, resolver| SandboxNameRegistration {
        texts: BTreeMap::new(),
        addr: None,
        ..registration(text, resolver)
    };
    let mut names: Vec<_> =
        (0..8).map(|number| registration(&format!("agent-{number}.eth"), EnsResolverKind::Public)).collect();
    names.extend([
        bare("none.eth", EnsResolverKind::None),
        bare("nocode.eth", EnsResolverKind::Address(NO_CODE)),
        registration("fleet.eth", EnsResolverKind::Wildcard),
        registration("off.eth", offchain()),
    ]);
    names
}

/// One and the same chain, read alone and in batches, each from a server of its own.
struct Both {
    alone: RpcEnsReader,
    batched: RpcEnsReader,
    servers: [SandboxRpcServer; 2],
    /// What names are told alone.
    expected: HashMap<EnsName, Result<NameReading, ChainError>>,
}

impl Both {
    async fn of(registrations: &[SandboxNameRegistration]) -> Self {
        let chain = chain_of(registrations);
        let gateway = Gateway::new({
            let chain = Arc::clone(&chain);
            move |request| {
                chain
                    .answer_ccip_read(request.sender, &request.data)
                    .map_err(|e| CcipReadGatewayError::new(e.to_string()))
            }
        });
        let servers =
            [SandboxRpcServer::bind(Arc::clone(&chain)).await.unwrap(), SandboxRpcServer::bind(chain).await.unwrap()];
        let [alone, batched] = servers
            .each_ref()
            .map(|server| ChainReaderConfig { timeout: UNHURRIED, ..config(vec![endpoint("sandbox", &server.url())]) });
        let batched = RpcEnsReader::new_batching(batched, &http(), gateway.clone());
        // The first exchange with an endpoint takes more requests.
        batched.read_name(&name("first.eth"), FIRST).await.unwrap();
        Self { alone: RpcEnsReader::new(alone, &http(), gateway), batched, servers, expected: HashMap::new() }
    }

    /// Reads these names at once, in this order; each is told what it is told alone. Number of requests to the chain.
    async fn read(&mut self, names: &[EnsName]) -> u64 {
        let before = self.servers[1].request_count();
        let readings = join_all(names.iter().map(|name| self.batched.read_name(name, FIRST))).await;
        let requests = self.servers[1].request_count() - before;
        for (name, reading) in names.iter().zip(readings) {
            if !self.expected.contains_key(name) {
                self.expected.insert(name.clone(), self.alone.read_name(name, FIRST).await);
            }
            assert_eq!(reading, self.expected[name], "{name}");
        }
        requests
    }
}

fn names_of(registrations: &[SandboxNameRegistration]) -> Vec<EnsName> {
    registrations.iter().map(|registration| registration.name.clone()).collect()
}

#[tokio::test]
async fn as_many_names_as_one_call_takes_cost_one_request() {
    let names: Vec<_> =
        (0..FULL).map(|number| registration(&format!("agent-{number}.eth"), EnsResolverKind::Public)).collect();
    let mut both = Both::of(&names).await;
    assert_eq!(both.read(&names_of(&names)).await, 1);
}

#[tokio::test]
async fn names_without_records_are_told_so_in_the_same_request() {
    let mut names = honest();
    names.retain(|honest| !matches!(honest.resolver, EnsResolverKind::Offchain { .. }));
    let mut both = Both::of(&names).await;
    let further = ["nobody.eth", "sub.agent-1.eth", "a.b.fleet.eth"].map(name);
    assert_eq!(both.read(&[names_of(&names), further.to_vec()].concat()).await, 1);
}

#[tokio::test]
async fn each_hostile_name_leaves_its_mates_as_they_are() {
    let mut all = honest();
    for (number, mode) in ALL_MODES.into_iter().enumerate() {
        all.push(misbehaving(&format!("evil-{number}.eth"), mode, "cl.entry"));
    }
    let mut both = Both::of(&all).await;
    let honest = names_of(&honest());
    for (number, evil) in names_of(&all)[honest.len()..].iter().enumerate() {
        let mut names = honest.clone();
        names.insert(number % (honest.len() + 1), evil.clone());
        both.read(&names).await;
    }
}

#[tokio::test]
async fn hostile_names_among_themselves_are_what_they_are_alone() {
    let names: Vec<_> = (0..FULL)
        .map(|number| misbehaving(&format!("evil-{number}.eth"), ALL_MODES[number % ALL_MODES.len()], "cl.entry"))
        .collect();
    let mut both = Both::of(&names).await;
    both.read(&names_of(&names)).await;
}

#[tokio::test]
async fn a_gas_burner_costs_one_request_more_once_the_endpoint_has_taken_long_batches() {
    for mode in [HostileResolverMode::Burn, HostileResolverMode::Invalid] {
        let mut names: Vec<_> =
            (1..FULL).map(|number| registration(&format!("agent-{number}.eth"), EnsResolverKind::Public)).collect();
        names.insert(0, misbehaving("evil.eth", mode, ""));
        let mut both = Both::of(&names).await;
        let mut requests = Vec::new();
        for _ in 0..4 {
            requests.push(both.read(&names_of(&names)).await);
        }
        assert!(requests[0] <= 8 && requests[3] == 2, "{mode:?}: {requests:?}");
    }
}

/// After a burner little gas is left, and after some of them less than a name takes. Here the whole call then fails,
/// with or without the gauge.
#[tokio::test]
async fn names_after_burners_are_not_starved() {
    for (burners, mates) in (1..=4).flat_map(|burners| (1..=3).map(move |mates| (burners, mates))) {
        let burner = |number| misbehaving(&format!("evil-{number}.eth"), HostileResolverMode::Burn, "");
        let mate = |number| registration(&format!("agent-{number}.eth"), EnsResolverKind::Public);
        let names: Vec<_> = (0..burners).map(burner).chain((0..mates).map(mate)).collect();
        let mut both = Both::of(&names).await;
        both.read(&names_of(&names)).await;
    }
}

#[tokio::test]
async fn owners_are_asked_for_together_and_each_owner_once() {
    let both = Both::of(&honest()).await;
    let reading = both.batched.read_name(&name("agent-0.eth"), FIRST).await.unwrap();
    let holding = async |reader: &RpcEnsReader, owner: &EnsName| {
        reader.read_cl_owner(owner, &reading.block, &reading.endpoints).await
    };
    let asked = async |owners: Vec<EnsName>| {
        let before = both.servers[1].request_count();
        let together = join_all(owners.iter().map(|owner| holding(&both.batched, owner))).await;
        let requests = both.servers[1].request_count() - before;
        for (owner, held) in owners.iter().zip(together) {
            assert_eq!(held, holding(&both.alone, owner).await, "{owner}");
        }
        requests
    };
    let honest = (0..8).map(|number| name(&format!("agent-{number}.eth")));
    let owners = honest.chain(["none.eth", "nobody.eth"].map(name)).cycle().take(FULL);
    assert_eq!(asked(owners.collect()).await, 1);
}

#[tokio::test]
async fn further_texts_share_a_request_with_each_other_and_with_owners() {
    let both = Both::of(&honest()).await;
    let reading = both.batched.read_name(&name("agent-0.eth"), FIRST).await.unwrap();
    let keys = ["cl.entry", "cl.entri"].map(str::to_owned);
    let (block, endpoints) = (&reading.block, &reading.endpoints);
    let before = both.servers[1].request_count();
    let names = ["agent-1.eth", "agent-2.eth", "none.eth", "nobody.eth"].map(name);
    let texts = join_all(names.iter().map(|name| both.batched.read_texts_at_block(name, block, endpoints, &keys)));
    let owner = name("agent-3.eth");
    let (texts, held) = join(texts, both.batched.read_cl_owner(&owner, block, endpoints)).await;
    assert_eq!(both.servers[1].request_count() - before, 1);
    for (name, texts) in names.iter().zip(texts) {
        assert_eq!(texts, both.alone.read_texts_at_block(name, block, endpoints, &keys).await, "{name}");
    }
    assert_eq!(held, both.alone.read_cl_owner(&owner, block, endpoints).await);
}
