//! Asks the NameWrapper for the name of a node.

use alloy_primitives::{B256, Bytes};
use alloy_sol_types::{SolCall, sol};
use clresolve_core::name::EnsName;

sol! {
    /// The name of a node in DNS wire format, if the node was ever wrapped; otherwise empty.
    function names(bytes32 node) external view returns (bytes);
}

/// Call data for the name of a node.
pub fn node_name_call(node: B256) -> Bytes {
    namesCall { node }.abi_encode().into()
}

/// The name in the call's result, if its namehash equals `node`. The namehash proves the name, so its source need not
/// be trusted.
pub fn decode_node_name(data: &[u8], node: B256) -> Option<EnsName> {
    let wire = namesCall::abi_decode_returns(data).ok()?;
    parse_wire_name(&wire).filter(|name| name.namehash() == node || clresolve_core::mutant!("any-spelling"))
}

/// Parses a name in DNS wire format (ENSIP-10). `None` if it is malformed or not in normal form.
fn parse_wire_name(wire: &[u8]) -> Option<EnsName> {
    let mut labels = Vec::new();
    let mut rest = wire;
    loop {
        let (length, after) = rest.split_first()?;
        if *length == 0 {
            break;
        }
        let (label, after) = after.split_at_checked(usize::from(*length))?;
        labels.push(std::str::from_utf8(label).ok()?);
        rest = after;
    }
    EnsName::parse(&labels.join(".")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_another_node_is_not_believed() {
        let name = EnsName::parse("sub.wrapped.eth").unwrap();
        let data = namesCall::abi_encode_returns(&Bytes::from(name.dns_encoded()));
        assert_eq!(decode_node_name(&data, name.namehash()), Some(name));
        assert_eq!(decode_node_name(&data, EnsName::parse("wrapped.eth").unwrap().namehash()), None);
        assert_eq!(decode_node_name(&[], B256::ZERO), None);
    }

    #[test]
    fn a_wire_format_is_whole_or_no_name() {
        let name = EnsName::parse("sub.wrapped.eth").unwrap();
        assert_eq!(parse_wire_name(&name.dns_encoded()), Some(name));
        for wire in
            [&b""[..], b"\x00", b"\x03et", b"\x03eth", b"\xffeth\x00", b"\x03\xff\xff\xff\x00", b"\x03e.h\x03eth"]
        {
            assert_eq!(parse_wire_name(wire), None, "{wire:?}");
        }
    }
}
