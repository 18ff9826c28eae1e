//! The canonical form of JSON (RFC 8785).

use std::cell::RefCell;
use std::io;
use std::ops::Range;

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

/// Doubles represent all integers up to this one exactly (RFC 7493, section 2.2).
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// The RFC 8785 form of `value`, whose objects have names that are strings, and repeat none.
///
/// # Errors
/// As for [`serde_json::to_vec`]. Raw JSON is rejected, because it may not be canonical.
pub fn canonical_json(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    canonical_json_without(value, &[])
}

/// The RFC 8785 form of `value` without the members at these paths. A path lists member names and skips arrays.
pub(crate) fn canonical_json_without(value: &impl Serialize, omitted: &[&[&str]]) -> serde_json::Result<Vec<u8>> {
    let text = RefCell::new(Vec::with_capacity(4096));
    let layout =
        CanonicalFormatter { text: &text, omitted, path: Vec::new(), objects: Vec::new(), members: Vec::new() };
    value.serialize(&mut Serializer::with_formatter(SharedBufferWriter(&text), layout))?;
    Ok(text.into_inner())
}

/// The output, which the serializer shares with its [`CanonicalFormatter`].
struct SharedBufferWriter<'t>(&'t RefCell<Vec<u8>>);

impl io::Write for SharedBufferWriter<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Formats numbers like ECMAScript, and sorts the members of each object when the object ends.
struct CanonicalFormatter<'t> {
    text: &'t RefCell<Vec<u8>>,
    omitted: &'t [&'t [&'t str]],
    /// Names of the members around the current position, outermost first.
    path: Vec<Range<usize>>,
    /// For each object around the current position, the index of its first member in `members`.
    objects: Vec<usize>,
    /// The complete members of these objects.
    members: Vec<MemberSpan>,
}

/// The position of a member in the text. `name` excludes the quotes.
struct MemberSpan {
    name: Range<usize>,
    end: usize,
}

impl CanonicalFormatter<'_> {
    /// Whether the innermost object has no member yet.
    fn is_object_empty(&self) -> bool {
        self.objects.last() == Some(&self.members.len())
    }

    fn is_omitted(&self, text: &[u8]) -> bool {
        let path = || self.path.iter().map(|name| &text[name.clone()]);
        self.omitted.iter().any(|omitted| omitted.iter().map(|name| name.as_bytes()).eq(path()))
    }
}

impl Formatter for CanonicalFormatter<'_> {
    #[inline]
    fn write_i64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: i64) -> io::Result<()> {
        if value.unsigned_abs() > MAX_SAFE_INTEGER {
            return self.write_f64(writer, value as f64);
        }
        CompactFormatter.write_i64(writer, value)
    }

    #[inline]
    fn write_u64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: u64) -> io::Result<()> {
        if value > MAX_SAFE_INTEGER {
            return self.write_f64(writer, value as f64);
        }
        CompactFormatter.write_u64(writer, value)
    }

    fn write_i128<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: i128) -> io::Result<()> {
        self.write_f64(writer, value as f64)
    }

    fn write_u128<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: u128) -> io::Result<()> {
        self.write_f64(writer, value as f64)
    }

    fn write_f32<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f32) -> io::Result<()> {
        self.write_f64(writer, value.into())
    }

    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(ryu_js::Buffer::new().format_finite(value).as_bytes())
    }

    fn write_raw_fragment<W: ?Sized + io::Write>(&mut self, _: &mut W, _: &str) -> io::Result<()> {
        Err(io::Error::other("raw JSON"))
    }

    #[inline]
    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.objects.push(self.members.len());
        CompactFormatter.begin_object(writer)
    }

    #[inline]
    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, _: bool) -> io::Result<()> {
        CompactFormatter.begin_object_key(writer, self.is_object_empty())?;
        let start = self.text.borrow().len() + 1;
        self.path.push(start..start);
        Ok(())
    }

    #[inline]
    fn end_object_key<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        if let Some(name) = self.path.last_mut() {
            name.end = self.text.borrow().len() - 1;
        }
        Ok(())
    }

    #[inline]
    fn end_object_value<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        let mut text = self.text.borrow_mut();
        let is_omitted = self.is_omitted(&text);
        let Some(name) = self.path.pop() else { return Ok(()) };
        if is_omitted {
            let comma = usize::from(!self.is_object_empty());
            text.truncate(name.start - 1 - comma);
        } else {
            self.members.push(MemberSpan { name, end: text.len() });
        }
        Ok(())
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        let first = self.objects.pop().unwrap_or_default();
        sort_members(&mut self.text.borrow_mut(), &mut self.members[first..]);
        self.members.truncate(first);
        CompactFormatter.end_object(writer)
    }
}

/// Sorts the members at the end of `text` by the UTF-16 code units of their names. Plain names are compared as bytes.
fn sort_members(text: &mut Vec<u8>, members: &mut [MemberSpan]) {
    let name = |member: &MemberSpan| &text[member.name.clone()];
    let Some(start) = members.first().map(|first| first.name.start - 1) else { return };
    let is_plain = |member: &MemberSpan| name(member).is_ascii() && !name(member).contains(&b'\\');
    if !members.iter().all(is_plain) {
        members.sort_by_cached_key(|member| utf16_units(&text[member.name.start - 1..=member.name.end]));
    } else if members.is_sorted_by_key(name) {
        return;
    } else {
        members.sort_by_key(name);
    }
    let unsorted = text.split_off(start);
    for (at, member) in members.iter().enumerate() {
        if at > 0 {
            text.push(b',');
        }
        text.extend_from_slice(&unsorted[member.name.start - 1 - start..member.end - start]);
    }
}

fn utf16_units(name: &[u8]) -> Vec<u16> {
    let name: String = serde_json::from_slice(name).expect("a name that was printed");
    name.encode_utf16().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn formed(value: &impl Serialize) -> String {
        String::from_utf8(canonical_json(value).expect("it has a form")).expect("UTF-8")
    }

    /// RFC 8785, sections 3.2.2 and 3.2.3.
    #[test]
    fn samples_of_rfc_8785_have_the_expected_form() {
        let text = r#"{
            "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
            "literals": [null, true, false]
        }"#;
        let value: Value = serde_json::from_str(text).expect("JSON");
        let expected = concat!(
            r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"#,
            r#""string":"€$\u000f\nA'B\"\\\\\"/"}"#
        );
        assert_eq!(formed(&value), expected);
        let names = ["\u{20ac}", "\r", "\u{fb33}", "1", "\u{1f600}", "\u{80}", "\u{f6}"];
        let expected = "{\"\\r\":1,\"1\":3,\"\u{80}\":5,\"\u{f6}\":6,\"\u{20ac}\":0,\"\u{1f600}\":4,\"\u{fb33}\":2}";
        assert_eq!(formed(&names.into_iter().zip(0..).collect::<HashMap<_, _>>()), expected);
    }

    /// RFC 8785, appendix B.
    #[test]
    fn numbers_are_formatted_like_ecmascript() {
        for (bits, expected) in [
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
            (0xc340_0000_0000_0000, "-9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5557, "333333333.33333343"),
            (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
            (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
        ] {
            assert_eq!(formed(&f64::from_bits(bits)), expected);
        }
        let integers = (i64::MIN, u64::MAX, i128::MAX, u128::MAX, 1.5_f32);
        let expected = "[-9223372036854776000,18446744073709552000,1.7014118346046923e+38,3.402823669209385e+38,1.5]";
        assert_eq!(formed(&integers), expected);
    }

    #[test]
    fn members_are_omitted_only_at_their_path() {
        let value = json!({"a": 1, "b": {"a": 2, "c": {"a": 3}, "d": 4}, "e": 5});
        let omitting = |paths: &[&[&str]]| String::from_utf8(canonical_json_without(&value, paths).expect("a form"));
        assert_eq!(omitting(&[&["a"]]), Ok(r#"{"b":{"a":2,"c":{"a":3},"d":4},"e":5}"#.to_owned()));
        assert_eq!(omitting(&[&["b", "a"], &["b", "d"], &["e"]]), Ok(r#"{"a":1,"b":{"c":{"a":3}}}"#.to_owned()));
        assert_eq!(omitting(&[&["a"], &["b"], &["e"]]), Ok("{}".to_owned()));
    }

    #[test]
    fn raw_json_is_rejected() {
        let raw = serde_json::value::to_raw_value(&json!({"b": 1, "a": 2})).expect("JSON");
        assert!(canonical_json(&raw).is_err());
    }

    fn value() -> impl Strategy<Value = Value> {
        let name = || "[a\"\\\\\u{0}-\u{1f}\u{7f}\u{e9}\u{2028}\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{1f600}]{0,3}";
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            name().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 8, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::btree_map(name(), inner, 0..8).prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn form_equals_that_of_the_library(value in prop::collection::hash_map(".{0,3}", value(), 0..4)) {
            let library = serde_json_canonicalizer::to_string(&value).expect("it has one");
            prop_assert_eq!(formed(&value), library);
        }
    }
}
