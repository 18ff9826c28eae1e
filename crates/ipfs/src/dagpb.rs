//! Strict dag-pb: a block that this module accepts means the same to every reader.
//!
//! It refuses duplicate fields and links, unknown fields, wrong wire types, padded numbers, links without a target, and
//! Data between Links. Data before Links is accepted, as the specification requires of readers: it is not ambiguous.
//! Only the form of Tsize is checked, because nothing here relies on its value.

use super::id::CidParts;
use super::protobuf::{ProtobufWireFields, ProtobufWireValue, set_field_once};

pub(super) struct DagPbNode<'a> {
    pub(super) data: Option<&'a [u8]>,
    pub(super) links: Vec<DagPbLink<'a>>,
}

/// A link to another block. A missing name is equivalent to an empty one.
pub(super) struct DagPbLink<'a> {
    pub(super) name: &'a str,
    pub(super) target: CidParts<'a>,
}

impl<'a> DagPbNode<'a> {
    /// Decodes a whole block. The error states what is wrong with it.
    pub(super) fn decode(block: &'a [u8]) -> Result<Self, &'static str> {
        let mut data = None;
        let mut links = Vec::new();
        let mut links_are_over = false;
        for field in ProtobufWireFields::from_message(block) {
            match field? {
                (1, ProtobufWireValue::Bytes(bytes)) => {
                    set_field_once(&mut data, bytes)?;
                    links_are_over = !links.is_empty();
                }
                (2, ProtobufWireValue::Bytes(_)) if links_are_over => return Err("Data lies between Links"),
                (2, ProtobufWireValue::Bytes(link)) => links.push(DagPbLink::decode(link)?),
                _ => return Err("a node has a field other than Links and Data"),
            }
        }
        Ok(Self { data, links })
    }
}

impl<'a> DagPbLink<'a> {
    fn decode(message: &'a [u8]) -> Result<Self, &'static str> {
        let mut target = None;
        let mut name = None;
        let mut tsize = None;
        for field in ProtobufWireFields::from_message(message) {
            match field? {
                (1, ProtobufWireValue::Bytes(_)) if name.is_some() || tsize.is_some() => {
                    return Err("a link's Hash is not first");
                }
                (1, ProtobufWireValue::Bytes(cid)) => set_field_once(&mut target, CidParts::parse_exact(cid)?)?,
                (2, ProtobufWireValue::Bytes(_)) if tsize.is_some() => return Err("a link's Name follows its Tsize"),
                (2, ProtobufWireValue::Bytes(text)) => {
                    set_field_once(&mut name, std::str::from_utf8(text).map_err(|_| "a link's Name is not UTF-8")?)?;
                }
                (3, ProtobufWireValue::Number(size)) => set_field_once(&mut tsize, size)?,
                _ => return Err("a link has a field other than Hash, Name and Tsize"),
            }
        }
        Ok(Self { name: name.unwrap_or_default(), target: target.ok_or("a link has no Hash")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link to the empty identity CID.
    const LINK: &[u8] = &[0x12, 0x06, 0x0a, 0x04, 0x01, 0x55, 0x00, 0x00];
    const DATA: &[u8] = &[0x0a, 0x01, b'x'];

    fn decode(parts: &[&[u8]]) -> Result<(Option<Vec<u8>>, usize), &'static str> {
        let block = parts.concat();
        DagPbNode::decode(&block).map(|node| (node.data.map(<[u8]>::to_vec), node.links.len()))
    }

    #[test]
    fn links_and_data_in_either_order() {
        assert_eq!(decode(&[]), Ok((None, 0)));
        assert_eq!(decode(&[LINK, LINK, DATA]), Ok((Some(b"x".to_vec()), 2)));
        assert_eq!(decode(&[DATA, LINK, LINK]), Ok((Some(b"x".to_vec()), 2)));
        assert_eq!(decode(&[LINK, DATA, LINK]), Err("Data lies between Links"));
        assert_eq!(decode(&[DATA, LINK, DATA]), Err("a field occurs twice"));
    }

    #[test]
    fn links_keep_the_order_of_their_fields() {
        let hash = [0x0a, 0x04, 0x01, 0x55, 0x00, 0x00];
        let link = |parts: &[&[u8]]| DagPbLink::decode(&parts.concat()).map(|link| link.name.to_owned());
        assert_eq!(link(&[&hash, &[0x12, 1, b'n'], &[0x18, 5]]), Ok("n".to_owned()));
        assert_eq!(link(&[&[0x12, 1, b'n'], &hash]), Err("a link's Hash is not first"));
        assert_eq!(link(&[&hash, &[0x18, 5], &[0x12, 1, b'n']]), Err("a link's Name follows its Tsize"));
        assert_eq!(link(&[&hash, &[0x12, 1, 0xff]]), Err("a link's Name is not UTF-8"));
        assert_eq!(link(&[&hash, &[0x18, 5], &[0x18, 5]]), Err("a field occurs twice"));
        assert_eq!(link(&[&[0x0a, 0x05, 0x01, 0x55, 0x00, 0x00, 0x00]]), Err("bytes follow the digest"));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic(block: Vec<u8>) {
            let _ = DagPbNode::decode(&block);
        }
    }
}
