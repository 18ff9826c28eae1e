//! The most expensive requests of 256 KiB, one per cause.

use clresolve_messages::request::question::MAX_BYTES;

/// The cause that makes a request expensive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The maximum number of numbers without an exact double, below a long name.
    Numbers,
    /// The maximum number of numbers that are expensive to round, each as long as fits.
    LongNumbers,
    /// The smallest doubles, with the maximum number of digits that a double is printed with.
    Subnormals,
    /// The same, each under its own member name.
    Members,
    /// Values that the schema accepts by the last of three alternatives, followed by one that it rejects.
    Values,
    /// Values that the schema rejects.
    Refused,
    /// Objects that lack members and have one unknown member.
    Objects,
    /// The maximum number of unknown members.
    Unknown,
    /// Unknown members with long names.
    Names,
    /// Member names that are matched against a pattern.
    Patterns,
    /// One text that is matched against patterns.
    Text,
    /// The same text, escaped.
    Escapes,
    /// Three-byte characters.
    Wide,
    /// Texts that are checked against formats.
    Formats,
    /// Items of a list that must be unique.
    Unique,
    /// The maximum depth, with a list that the schema rejects at each level.
    Levels,
    /// A duplicate member, the second one at the end.
    Twice,
}

impl Kind {
    pub(crate) const ALL: [Self; 17] = [
        Self::Numbers,
        Self::LongNumbers,
        Self::Subnormals,
        Self::Members,
        Self::Values,
        Self::Refused,
        Self::Objects,
        Self::Unknown,
        Self::Names,
        Self::Patterns,
        Self::Text,
        Self::Escapes,
        Self::Wide,
        Self::Formats,
        Self::Unique,
        Self::Levels,
        Self::Twice,
    ];

    /// The question about this request, as the body of `POST /v1/requests/check`.
    pub(crate) fn question(self, name: &str, verb: &str) -> Vec<u8> {
        let request = String::from_utf8(self.request()).expect("JSON is UTF-8");
        format!(r#"{{"name":"{name}","verb":"{verb}","request":{request}}}"#).into_bytes()
    }

    /// The request, padded with spaces to the maximum size.
    pub(crate) fn request(self) -> Vec<u8> {
        let room = MAX_BYTES - 2048;
        let list = |item: &str, most: usize| vec![item; (room / (item.len() + 1)).min(most)].join(",");
        let members = |count: usize, member: &dyn Fn(usize) -> String| (0..count).map(member).collect::<String>();
        // Uses no more digits than a double is printed with, so that the parser accepts as many numbers as there may be
        // values.
        let inexact = format!("9007199254740993.{}", "0".repeat(12));
        let inner = match self {
            Self::Numbers => format!(r#","any":{{"{}":[{}]}}"#, "n".repeat(240), list(&inexact, 8000)),
            Self::LongNumbers => {
                let long = format!("8.43387743279489105278063{}1e-294", "0".repeat(220));
                format!(r#","any":{{"n":[{}]}}"#, list(&long, 1000))
            }
            Self::Subnormals => format!(r#","any":{{"n":[{}]}}"#, list("2.2250738585072011e-308", 8000)),
            Self::Members => format!(r#","any":{{"":0{}}}"#, members(6000, &|at| format!(r#","{at:08}":{inexact}"#))),
            Self::Values => format!(r#","values":[{},1]"#, list("0", 8000)),
            Self::Refused => format!(r#","values":[{}]"#, list("true", 8000)),
            Self::Objects => format!(r#","objects":[{}]"#, list(r#"{"d":0}"#, 4000)),
            Self::Unknown => members(8000, &|at| format!(r#","m{at:06}":[]"#)),
            Self::Names => members(250, &|at| format!(r#","{at:0>1000}":0"#)),
            Self::Patterns => {
                format!(r#","named":{{"":0{}}}"#, members(8000, &|at| format!(r#","aa0{at:012}x":0"#)))
            }
            Self::Text => format!(r#","text":"{}""#, "a".repeat(room)),
            Self::Escapes => format!(r#","text":"{}""#, r"\u0001".repeat(room / 6)),
            Self::Wide => format!(r#","text":"{}""#, "\u{ffff}".repeat(room / 3)),
            Self::Formats => format!(r#","formats":[{}]"#, list(r#""a1@example.example-12345""#, 8000)),
            Self::Unique => {
                format!(r#","unique":[[]{},[]]"#, members(3900, &|at| format!(r#",{{"a":"{:0>40}"}}"#, at + 1)))
            }
            Self::Levels => {
                let deep = |inner: String, at: usize| format!(r#"{{"{at:0>1000}":0,"deep":{inner}}}"#);
                let bottom = format!("[{}]", list(&format!("9{}", "0".repeat(28)), 7500));
                format!(r#","deep":{}"#, (0..13).fold(bottom, deep))
            }
            Self::Twice => format!(r#"{},"x402":0"#, members(8000, &|at| format!(r#","m{at:06}x{at:014}":0"#))),
        };
        let text = format!(r#"{{"x402":{{"verb":"sum","version":"1.0.0"}}{inner}"#);
        assert!(text.len() < MAX_BYTES, "{self:?}: {} bytes", text.len());
        // The padding is inside the object, because the parser drops space around it.
        let mut text = text.into_bytes();
        text.resize(MAX_BYTES - 1, b' ');
        text.push(b'}');
        text
    }
}
