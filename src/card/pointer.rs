//! JSON Pointers (RFC 6901): how a reason names a place in a document.

/// The pointer made of `segments`, from the outside in.
pub fn of<'a>(segments: impl IntoIterator<Item = &'a str>) -> String {
    let mut pointer = String::new();
    for segment in segments {
        push(&mut pointer, segment);
    }
    pointer
}

/// Appends one segment, `~` and `/` escaped.
pub fn push(pointer: &mut String, segment: &str) {
    pointer.push('/');
    for character in segment.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

/// Whether `place` is `ancestor` or lies below it.
pub fn within(place: &str, ancestor: &str) -> bool {
    place.strip_prefix(ancestor).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_escaped() {
        assert_eq!(of(["a/b", "~", "0"]), "/a~1b/~0/0");
        assert_eq!(of([]), "");
    }

    #[test]
    fn within_respects_segment_borders() {
        assert!(within("/a/b", "/a") && within("/a", "/a") && within("/a", ""));
        assert!(!within("/ab", "/a"));
    }
}
