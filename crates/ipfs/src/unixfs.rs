//! UnixFS: the Data of a dag-pb node, and the rules for files and directories.
//!
//! Duplicate and unknown fields are refused, as in dag-pb and for the same reason. `blocksizes` must be encoded as
//! single values, as all importers do, and not packed.

use std::collections::HashSet;

use super::dagpb::{DagPbLink, DagPbNode};
use super::path::check_entry_name;
use super::protobuf::{ProtobufWireFields, ProtobufWireValue, set_field_once};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnixFsDataType {
    Directory,
    /// A file or a part of one. The legacy type Raw, which old importers used for leaves, is read as a file.
    File,
    HamtShard,
    /// Symlinks, metadata and unknown types, which are not supported: the type code.
    Other(u64),
}

/// The decoded Data of a node.
pub(super) struct UnixFsData<'a> {
    pub(super) kind: UnixFsDataType,
    pub(super) data: &'a [u8],
    pub(super) hash_type: Option<u64>,
    pub(super) fanout: Option<u64>,
    file_size: Option<u64>,
    block_sizes: Vec<u64>,
}

impl<'a> UnixFsData<'a> {
    /// Decodes the Data of `node`. The error states what is wrong with it.
    pub(super) fn from_node(node: &DagPbNode<'a>) -> Result<Self, &'static str> {
        let mut kind = None;
        let mut data = None;
        let mut file_size = None;
        let mut block_sizes = Vec::new();
        let mut hash_type = None;
        let mut fanout = None;
        let mut mode = None;
        let mut mtime = None;
        for field in ProtobufWireFields::from_message(node.data.ok_or("the node has no Data")?) {
            match field? {
                (1, ProtobufWireValue::Number(code)) => set_field_once(&mut kind, UnixFsDataType::from_code(code))?,
                (2, ProtobufWireValue::Bytes(bytes)) => set_field_once(&mut data, bytes)?,
                (3, ProtobufWireValue::Number(size)) => set_field_once(&mut file_size, size)?,
                (4, ProtobufWireValue::Number(size)) => block_sizes.push(size),
                (5, ProtobufWireValue::Number(code)) => set_field_once(&mut hash_type, code)?,
                (6, ProtobufWireValue::Number(width)) => set_field_once(&mut fanout, width)?,
                (7, ProtobufWireValue::Number(bits)) => set_field_once(&mut mode, bits)?,
                (8, ProtobufWireValue::Bytes(time)) => set_field_once(&mut mtime, time)?,
                _ => return Err("the Data has an unknown field"),
            }
        }
        let kind = kind.ok_or("the Data has no Type")?;
        Ok(Self { kind, data: data.unwrap_or_default(), hash_type, fanout, file_size, block_sizes })
    }

    /// Bytes of the file below this node. The stated sizes must be consistent with each other.
    ///
    /// The sizes of the children are only claims at this point. [`super::DagWalk`] checks each child against its size.
    pub(super) fn checked_file_size(&self, node: &DagPbNode) -> Result<u64, &'static str> {
        if self.block_sizes.len() != node.links.len() {
            return Err("blocksizes and links differ in number");
        }
        if node.links.iter().any(|link| !link.name.is_empty()) {
            return Err("a chunk of a file has a name");
        }
        let size = self
            .block_sizes
            .iter()
            .try_fold(self.data.len() as u64, |sum, size| sum.checked_add(*size))
            .ok_or("the sum of blocksizes overflows")?;
        if self.file_size.unwrap_or(0) != size {
            return Err("filesize is not the sum of the data and the blocksizes");
        }
        Ok(size)
    }

    /// The chunks of a file in order, each with its required number of bytes.
    pub(super) fn file_chunks<'n>(
        &self,
        node: &'n DagPbNode<'a>,
    ) -> impl DoubleEndedIterator<Item = (&'n DagPbLink<'a>, u64)> {
        node.links.iter().zip(self.block_sizes.iter().copied())
    }
}

impl UnixFsDataType {
    fn from_code(code: u64) -> Self {
        match code {
            0 | 2 => Self::File,
            1 => Self::Directory,
            5 => Self::HamtShard,
            other => Self::Other(other),
        }
    }
}

/// The entry called `name` of a plain directory. Every name in the directory must be valid for a directory entry, and
/// unique.
pub(super) fn find_directory_entry<'n, 'a>(
    node: &'n DagPbNode<'a>,
    name: &str,
) -> Result<Option<&'n DagPbLink<'a>>, &'static str> {
    let mut names = HashSet::with_capacity(node.links.len());
    for link in &node.links {
        if check_entry_name(link.name).is_err() && !mutant!("bad-names-in-directories") {
            return Err("a directory entry has an invalid name");
        }
        if !names.insert(link.name) {
            return Err("a directory lists a name twice");
        }
    }
    Ok(node.links.iter().find(|link| link.name == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: &[u8] = &[0x12, 0x06, 0x0a, 0x04, 0x01, 0x55, 0x00, 0x00];

    fn size(data: &[u8], links: usize) -> Result<u64, &'static str> {
        let block = [LINK.repeat(links), vec![0x0a, data.len() as u8], data.to_vec()].concat();
        let node = DagPbNode::decode(&block)?;
        UnixFsData::from_node(&node)?.checked_file_size(&node)
    }

    #[test]
    fn sizes_must_agree() {
        assert_eq!(size(&[0x08, 2], 0), Ok(0));
        assert_eq!(size(&[0x08, 2, 0x18, 0], 0), Ok(0));
        assert_eq!(size(&[0x08, 2, 0x12, 1, b'x', 0x18, 1], 0), Ok(1));
        assert_eq!(size(&[0x08, 2, 0x12, 1, b'x', 0x18, 4, 0x20, 1, 0x20, 2], 2), Ok(4));
        let wrong = Err("filesize is not the sum of the data and the blocksizes");
        assert_eq!(size(&[0x08, 2, 0x12, 1, b'x'], 0), wrong);
        assert_eq!(size(&[0x08, 2, 0x12, 1, b'x', 0x18, 2], 0), wrong);
        assert_eq!(size(&[0x08, 2, 0x18, 1, 0x20, 1], 0), Err("blocksizes and links differ in number"));
        assert_eq!(size(&[0x08, 2, 0x18, 1], 1), Err("blocksizes and links differ in number"));
    }

    #[test]
    fn doubles_and_unknown_fields_are_refused() {
        assert_eq!(size(&[0x18, 0], 0), Err("the Data has no Type"));
        assert_eq!(size(&[0x08, 2, 0x08, 2], 0), Err("a field occurs twice"));
        assert_eq!(size(&[0x08, 2, 0x12, 0, 0x12, 0], 0), Err("a field occurs twice"));
        assert_eq!(size(&[0x08, 2, 0x48, 0], 0), Err("the Data has an unknown field"));
        assert_eq!(size(&[0x08, 2, 0x18, 1, 0x22, 1, 1], 1), Err("the Data has an unknown field"));
    }

    #[test]
    fn mode_and_mtime_are_accepted() {
        assert_eq!(size(&[0x08, 2, 0x38, 0xa4, 0x03, 0x42, 2, 0x08, 1], 0), Ok(0));
    }
}
