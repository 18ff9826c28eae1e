//! JSON Pointers (RFC 6901), which locate a reason's value in a document.

use serde_json::Value;

/// The pointer made of `segments`, outermost first.
pub fn join_pointer_segments<'a>(segments: impl IntoIterator<Item = &'a str>) -> String {
    let mut pointer = String::new();
    for segment in segments {
        push_pointer_segment(&mut pointer, segment);
    }
    pointer
}

/// Appends one segment, with `~` and `/` escaped.
pub fn push_pointer_segment(pointer: &mut String, segment: &str) {
    pointer.push('/');
    if !segment.contains(['~', '/']) {
        return pointer.push_str(segment);
    }
    for character in segment.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

/// The value in `document` at `pointer`. Equivalent to [`Value::pointer`], which copies every segment twice: the checks
/// look up dozens of pointers, and the pointers in rules contain nothing to unescape.
pub fn find_value_at_pointer<'v>(document: &'v Value, pointer: &str) -> Option<&'v Value> {
    let (mut value, mut rest) = (document, pointer);
    while let Some(below) = rest.strip_prefix('/') {
        let end = below.bytes().position(|byte| matches!(byte, b'/' | b'~')).unwrap_or(below.len());
        let segment;
        (segment, rest) = below.split_at(end);
        if rest.starts_with('~') {
            return document.pointer(pointer);
        }
        value = match value {
            Value::Object(members) => members.get(segment)?,
            Value::Array(items) => items.get(parse_array_index(segment)?)?,
            _ => return None,
        };
    }
    rest.is_empty().then_some(value)
}

/// Parses a segment as an array index: digits without a leading zero.
fn parse_array_index(segment: &str) -> Option<usize> {
    let is_padded = segment.len() > 1 && segment.starts_with('0');
    if is_padded || segment.starts_with('+') { None } else { segment.parse().ok() }
}

/// Whether `place` equals `ancestor` or is inside it.
pub fn is_pointer_within(place: &str, ancestor: &str) -> bool {
    place.strip_prefix(ancestor).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_escaped() {
        assert_eq!(join_pointer_segments(["a/b", "~", "0"]), "/a~1b/~0/0");
        assert_eq!(join_pointer_segments([]), "");
    }

    #[test]
    fn values_are_found_where_serde_json_finds_them() {
        let document = serde_json::json!({"a": {"b": [1, {"c": 2}], "": 3}, "x/y": {"~": 4}, "": 5});
        for pointer in [
            "", "/", "/a", "/a/b", "/a/b/0", "/a/b/1/c", "/a/b/01", "/a/b/+1", "/a/b/-", "/a/b/2", "/a/b/x", "/a/b/",
            "/a/", "/a//", "/x~1y/~0", "/x/y", "a", "/a/b/0/d", "/none",
        ] {
            assert_eq!(find_value_at_pointer(&document, pointer), document.pointer(pointer), "{pointer}");
        }
    }

    #[test]
    fn within_respects_segment_borders() {
        assert!(is_pointer_within("/a/b", "/a") && is_pointer_within("/a", "/a") && is_pointer_within("/a", ""));
        assert!(!is_pointer_within("/ab", "/a"));
    }
}
