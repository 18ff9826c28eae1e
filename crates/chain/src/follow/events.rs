//! Recognises event logs which show that a name may have changed, and extracts the name's node.
//!
//! A log is only a hint that the name should be read again. Its other contents are not trusted.

use std::sync::LazyLock;

use alloy_primitives::{Address, B256, b256, keccak256};
use alloy_rpc_types_eth::Log;
use clresolve_state::Contracts;

/// Namehash of `eth`. The registrar identifies second-level `.eth` names by the hash of their label.
const ETH_NODE: B256 = b256!("93cdeb708b7545dc668eb9280176169d1c33cfd8ed6f04690a0bcc88a93fc4ae");

/// A possible change to a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Change {
    /// Height of the block that contains the log.
    pub block: u64,
    /// The contract that emitted the log.
    pub source: Source,
    /// The name's node (EIP-137).
    pub node: B256,
}

/// The kind of contract that reported a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The registry, the `.eth` registrar or the NameWrapper: the change affects the name and all its subnames.
    Registration,
    /// The resolver at this address: the change affects the names whose records it stores for this node.
    Resolver(Address),
}

/// Event topics by group of contracts.
pub(super) struct Topics {
    /// Topics of the registration contracts.
    pub(super) registration: Vec<B256>,
    /// Topics of resolvers.
    pub(super) resolver: Vec<B256>,
}

/// Where a log contains its node, or the data from which the node is derived.
#[derive(Clone, Copy)]
enum Node {
    /// The first topic after the signature.
    First,
    /// The label hash in the second topic, below the node in the first.
    Subnode,
    /// The id of a second-level `.eth` name, in the topic with this index.
    EthLabel(usize),
    /// The first word of the data.
    Data,
    /// The elements of the first array in the data.
    DataArray,
}

static RESOLVER: LazyLock<Vec<(B256, Node)>> = LazyLock::new(|| {
    let events = [
        "AddrChanged(bytes32,address)",
        "AddressChanged(bytes32,uint256,bytes)",
        "ContenthashChanged(bytes32,bytes)",
        "TextChanged(bytes32,string,string)",
        "TextChanged(bytes32,string,string,string)",
        "VersionChanged(bytes32,uint64)",
    ];
    events.map(|event| (keccak256(event), Node::First)).into()
});

static REGISTRY: LazyLock<Vec<(B256, Node)>> = LazyLock::new(|| {
    let events = [
        ("NewOwner(bytes32,bytes32,address)", Node::Subnode),
        ("NewResolver(bytes32,address)", Node::First),
        ("Transfer(bytes32,address)", Node::First),
    ];
    events.map(|(event, node)| (keccak256(event), node)).into()
});

static REGISTRAR: LazyLock<Vec<(B256, Node)>> = LazyLock::new(|| {
    let events = [
        ("NameRegistered(uint256,address,uint256)", Node::EthLabel(1)),
        ("NameRenewed(uint256,uint256)", Node::EthLabel(1)),
        ("Transfer(address,address,uint256)", Node::EthLabel(3)),
    ];
    events.map(|(event, node)| (keccak256(event), node)).into()
});

static NAME_WRAPPER: LazyLock<Vec<(B256, Node)>> = LazyLock::new(|| {
    let events = [
        ("ExpiryExtended(bytes32,uint64)", Node::First),
        ("FusesSet(bytes32,uint32)", Node::First),
        ("NameUnwrapped(bytes32,address)", Node::First),
        ("NameWrapped(bytes32,bytes,address,uint32,uint64)", Node::First),
        ("TransferBatch(address,address,address,uint256[],uint256[])", Node::DataArray),
        ("TransferSingle(address,address,address,uint256,uint256)", Node::Data),
    ];
    events.map(|(event, node)| (keccak256(event), node)).into()
});

impl Topics {
    pub(super) fn new() -> Self {
        let of = |events: &[(B256, Node)]| events.iter().map(|(topic, _)| *topic).collect::<Vec<_>>();
        Self { registration: [of(&REGISTRY), of(&REGISTRAR), of(&NAME_WRAPPER)].concat(), resolver: of(&RESOLVER) }
    }
}

/// The contracts that store registrations.
pub(super) const fn registration(contracts: &Contracts) -> [Address; 3] {
    [contracts.registry, contracts.base_registrar, contracts.name_wrapper]
}

/// The changes that a log reports. `None` if its event or its shape is not recognised.
pub(super) fn changes(log: &Log, contracts: &Contracts) -> Option<Vec<Change>> {
    let (block, topic) = (log.block_number?, log.topic0()?);
    let address = log.address();
    let (events, source) = if address == contracts.registry {
        (&REGISTRY, Source::Registration)
    } else if address == contracts.base_registrar {
        (&REGISTRAR, Source::Registration)
    } else if address == contracts.name_wrapper {
        (&NAME_WRAPPER, Source::Registration)
    } else {
        (&RESOLVER, Source::Resolver(address))
    };
    let (_, place) = events.iter().find(|(event, _)| event == topic)?;
    Some(nodes(log, *place)?.into_iter().map(|node| Change { source, node, block }).collect())
}

fn nodes(log: &Log, place: Node) -> Option<Vec<B256>> {
    let topic = |index: usize| log.topics().get(index).copied();
    let one = match place {
        Node::First => topic(1),
        Node::Subnode => topic(1).zip(topic(2)).map(|(node, label)| subnode(node, label)),
        Node::EthLabel(index) => topic(index).map(|label| subnode(ETH_NODE, label)),
        Node::Data => word(log.data().data.as_ref(), 0),
        Node::DataArray => return array(log.data().data.as_ref()),
    };
    one.map(|node| vec![node])
}

/// The node of the name with this label hash below `node` (EIP-137).
pub(crate) fn subnode(node: B256, label: B256) -> B256 {
    keccak256([node, label].concat())
}

fn word(data: &[u8], at: usize) -> Option<B256> {
    data.get(at..at.checked_add(32)?).map(B256::from_slice)
}

fn number(data: &[u8], at: usize) -> Option<usize> {
    let (high, low) = data.get(at..at.checked_add(32)?)?.split_last_chunk::<8>()?;
    let low = usize::try_from(u64::from_be_bytes(*low)).ok()?;
    high.iter().all(|byte| *byte == 0).then_some(low)
}

/// The `bytes` or `string` value whose offset is the first word.
pub(crate) fn first_bytes(data: &[u8]) -> Option<&[u8]> {
    let start = number(data, 0)?;
    let length = number(data, start)?;
    data.get(start.checked_add(32)?..)?.get(..length)
}

/// Decodes the array whose offset is the first word. Data that ends early gives fewer elements.
/// [`MAX_REPLY_BYTES`](crate::transport::MAX_REPLY_BYTES) bounds the data.
fn array(data: &[u8]) -> Option<Vec<B256>> {
    let offset = number(data, 0)?;
    let count = number(data, offset)?;
    Some((1..=count).map_while(|index| word(data, offset.checked_add(index.checked_mul(32)?)?)).collect())
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{Bytes, LogData, U256};
    use alloy_sol_types::SolValue;

    use super::*;

    fn log(address: Address, event: &str, topics: &[B256], data: Vec<u8>) -> Log {
        let topics = std::iter::once(keccak256(event)).chain(topics.iter().copied()).collect();
        let data = LogData::new_unchecked(topics, Bytes::from(data));
        Log { inner: alloy_primitives::Log { address, data }, block_number: Some(7), ..Log::default() }
    }

    fn nodes_of(log: &Log) -> Vec<B256> {
        changes(log, &Contracts::default()).into_iter().flatten().map(|change| change.node).collect()
    }

    /// The expected nodes come from the library's namehash, so that they do not depend on our own arithmetic alone.
    #[test]
    fn each_contract_says_in_its_own_way_which_name_it_means() {
        let at = Contracts::default();
        let node = |name: &str| clresolve_core::name::EnsName::parse(name).expect("a name").node();
        let (eth, agent, below) = (node("eth"), node("agent.eth"), node("sub.agent.eth"));
        let id = |name: &str| U256::from_be_bytes(node(name).0);
        for (address, event, topics, data, expected) in [
            (at.registry, "NewOwner(bytes32,bytes32,address)", vec![agent, keccak256("sub")], vec![], vec![below]),
            (at.registry, "NewResolver(bytes32,address)", vec![agent], vec![], vec![agent]),
            (at.registry, "Transfer(bytes32,address)", vec![eth], vec![], vec![eth]),
            (at.base_registrar, "NameRenewed(uint256,uint256)", vec![keccak256("agent")], vec![], vec![agent]),
            (
                at.base_registrar,
                "NameRegistered(uint256,address,uint256)",
                vec![keccak256("agent")],
                vec![],
                vec![agent],
            ),
            (
                at.base_registrar,
                "Transfer(address,address,uint256)",
                vec![B256::ZERO, B256::ZERO, keccak256("agent")],
                vec![],
                vec![agent],
            ),
            (at.name_wrapper, "FusesSet(bytes32,uint32)", vec![below], vec![], vec![below]),
            (at.name_wrapper, "ExpiryExtended(bytes32,uint64)", vec![below], vec![], vec![below]),
            (at.name_wrapper, "NameUnwrapped(bytes32,address)", vec![below], vec![], vec![below]),
            (at.name_wrapper, "NameWrapped(bytes32,bytes,address,uint32,uint64)", vec![below], vec![], vec![below]),
            (
                at.name_wrapper,
                "TransferSingle(address,address,address,uint256,uint256)",
                vec![],
                (id("agent.eth"), U256::from(1)).abi_encode_params(),
                vec![agent],
            ),
            (
                at.name_wrapper,
                "TransferBatch(address,address,address,uint256[],uint256[])",
                vec![],
                (vec![id("agent.eth"), id("sub.agent.eth")], vec![U256::from(1); 2]).abi_encode_params(),
                vec![agent, below],
            ),
            (at.registry, "TextChanged(bytes32,string,string,string)", vec![agent], vec![], vec![]),
            (Address::ZERO, "TextChanged(bytes32,string,string,string)", vec![agent], vec![], vec![agent]),
            (Address::ZERO, "TextChanged(bytes32,string,string)", vec![agent], vec![], vec![agent]),
            (Address::ZERO, "AddrChanged(bytes32,address)", vec![agent], vec![], vec![agent]),
            (Address::ZERO, "AddressChanged(bytes32,uint256,bytes)", vec![agent], vec![], vec![agent]),
            (Address::ZERO, "ContenthashChanged(bytes32,bytes)", vec![agent], vec![], vec![agent]),
            (Address::ZERO, "VersionChanged(bytes32,uint64)", vec![agent], vec![], vec![agent]),
            (Address::ZERO, "Transfer(bytes32,address)", vec![agent], vec![], vec![]),
        ] {
            assert_eq!(nodes_of(&log(address, event, &topics, data)), expected, "{event} of {address}");
        }
    }

    /// The registry emits no event when a wrapped name changes hands.
    #[test]
    fn no_name_of_a_batch_is_hidden_behind_others() {
        let ids: Vec<U256> = (1..=5000).map(U256::from).collect();
        let data = (ids.clone(), ids.clone()).abi_encode_params();
        let event = "TransferBatch(address,address,address,uint256[],uint256[])";
        let nodes = nodes_of(&log(Contracts::default().name_wrapper, event, &[], data));
        assert_eq!(nodes, ids.into_iter().map(B256::from).collect::<Vec<_>>());
    }

    #[test]
    fn the_first_string_is_read_within_the_data_alone() {
        let data = ("cl.owner".to_owned(), "owner.eth".to_owned()).abi_encode_params();
        assert_eq!(first_bytes(&data), Some(&b"cl.owner"[..]));
        for cut in [0, 31, 64, 95, 103] {
            assert_eq!(first_bytes(&data[..cut]), None, "{cut}");
        }
        let long = [U256::from(32).abi_encode(), U256::from(u64::MAX).abi_encode(), vec![1; 40]].concat();
        assert_eq!((first_bytes(&long), first_bytes(&U256::MAX.abi_encode())), (None, None));
    }

    #[test]
    fn logs_of_any_other_shape_tell_nothing() {
        let at = Contracts::default();
        let batch = "TransferBatch(address,address,address,uint256[],uint256[])";
        let far = U256::MAX.abi_encode();
        let long = [U256::from(32).abi_encode(), U256::from(u64::MAX).abi_encode(), vec![1; 40]].concat();
        let empty = (Vec::<U256>::new(), Vec::<U256>::new()).abi_encode_params();
        for (event, topics, data, count) in [
            ("NewOwner(bytes32,bytes32,address)", vec![B256::ZERO], vec![], None),
            ("FusesSet(bytes32,uint32)", vec![], vec![], None),
            (batch, vec![], vec![], None),
            (batch, vec![], far, None),
            (batch, vec![], long, Some(1)),
            (batch, vec![], empty, Some(0)),
        ] {
            let address = if event.starts_with("NewOwner") { at.registry } else { at.name_wrapper };
            let told = changes(&log(address, event, &topics, data), &at);
            assert_eq!(told.map(|changes| changes.len()), count, "{event}");
        }
        assert_eq!(changes(&Log::<LogData>::default(), &at), None);
    }
}
