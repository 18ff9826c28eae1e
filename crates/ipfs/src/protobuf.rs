//! The part of the protobuf wire format that dag-pb and UnixFS use: varints and byte strings.

use super::varint;

/// The fields of a message by number, in wire order. Iteration stops at the end of the message or after an error.
pub(super) struct ProtobufWireFields<'a> {
    rest: &'a [u8],
}

/// A value of one of the two supported wire types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProtobufWireValue<'a> {
    /// Wire type 0 (varint).
    Number(u64),
    /// Wire type 2 (length-delimited).
    Bytes(&'a [u8]),
}

impl<'a> ProtobufWireFields<'a> {
    pub(super) fn from_message(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    fn read_field(&mut self) -> Result<(u64, ProtobufWireValue<'a>), &'static str> {
        let key = self.read_varint()?;
        let value = match key & 7 {
            0 => ProtobufWireValue::Number(self.read_varint()?),
            2 => ProtobufWireValue::Bytes(self.read_length_delimited()?),
            _ => return Err("a field has a wire type that the format does not use"),
        };
        Ok((key >> 3, value))
    }

    fn read_varint(&mut self) -> Result<u64, &'static str> {
        let (value, rest) =
            varint::split_varint(self.rest).map_err(|_| "a number is cut short, padded or too large")?;
        self.rest = rest;
        Ok(value)
    }

    fn read_length_delimited(&mut self) -> Result<&'a [u8], &'static str> {
        let length = usize::try_from(self.read_varint()?).unwrap_or(usize::MAX);
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or("a length runs past the end")?;
        self.rest = rest;
        Ok(bytes)
    }
}

impl<'a> Iterator for ProtobufWireFields<'a> {
    type Item = Result<(u64, ProtobufWireValue<'a>), &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.read_field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

/// Stores the value of a field, and refuses a second value.
pub(super) fn set_field_once<T>(slot: &mut Option<T>, value: T) -> Result<(), &'static str> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err("a field occurs twice"),
    }
}
