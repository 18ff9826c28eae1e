//! The receipts of 256 KiB that cost most to judge, by what is dear in them.

use clresolve_receipt::MAX_BYTES;

const SDK: &str = include_str!("../../../sandbox/src/receipts/sdk.json");
const LAYERED: &str = include_str!("../../../sandbox/src/receipts/runtime-core.json");

/// What is dear in a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// As many values as are read, in one list.
    Values,
    /// The same, as members in the wrong order.
    Members,
    /// As many levels as are read, over a long text: each level reads it once more.
    Levels,
    /// Characters that are escaped in the form.
    Escapes,
    /// Characters of three bytes.
    Wide,
    /// Numbers with many digits.
    Numbers,
    /// As many members as fit that nobody signs.
    Unsigned,
    /// Long names of members that nobody signs.
    Names,
    /// x402's own, with the longest JWS.
    Jws,
    /// Of the SDKs, with members in the wrong order: two forms are tried, and the bound schema looks at each member.
    SdkMembers,
    /// Of the SDKs, with as many values as are read, each of which the bound schema looks at in vain and then again.
    SdkValues,
    /// Of the SDKs, with values each of which the bound schema refuses.
    SdkRefused,
    /// Of runtime-core, with members in the wrong order.
    Layered,
}

impl Kind {
    pub(crate) const ALL: [Self; 13] = [
        Self::Values,
        Self::Members,
        Self::Levels,
        Self::Escapes,
        Self::Wide,
        Self::Numbers,
        Self::Unsigned,
        Self::Names,
        Self::Jws,
        Self::SdkMembers,
        Self::SdkValues,
        Self::SdkRefused,
        Self::Layered,
    ];

    /// What stands in `input`.
    fn input(self) -> String {
        let room = MAX_BYTES - 2048;
        let list = |item: &str, most: usize| vec![item; (room / (item.len() + 1)).min(most)].join(",");
        match self {
            Self::Values | Self::SdkValues => format!("[{}]", list("0", 8000)),
            Self::SdkRefused => format!("[{}]", list("true", 8000)),
            Self::Members | Self::SdkMembers | Self::Layered => {
                let members: Vec<_> = (0..4000).rev().map(|number| format!(r#""{number}x":{{}}"#)).collect();
                format!("{{{}}}", members.join(","))
            }
            Self::Levels => format!("{}\"{}\"{}", "[".repeat(13), "x".repeat(room), "]".repeat(13)),
            Self::Escapes => format!("\"{}\"", r"\u0001".repeat(room / 6)),
            Self::Wide => format!("\"{}\"", "\u{ffff}".repeat(room / 3)),
            Self::Numbers => format!("[{}]", list(&format!("1.3{}", "0".repeat(27)), 8000)),
            Self::Unsigned | Self::Names | Self::Jws => "{}".to_owned(),
        }
    }

    /// Members that nobody signs.
    fn further(self) -> String {
        let (count, digits) = match self {
            Self::Unsigned => (8000, 5),
            Self::Names => (250, 1000),
            _ => return String::new(),
        };
        (0..count).map(|number| format!(r#","{number:0digits$}":0"#)).collect()
    }

    /// The receipt.
    pub(crate) fn receipt(self) -> Vec<u8> {
        if self == Self::Jws {
            let payload = "e30".repeat(4000);
            return format!(r#"{{"format":"jws","signature":"eyJhbGciOiJFZERTQSIsImtpZCI6ImsifQ.{payload}.AAAA"}}"#)
                .into();
        }
        let (input, further) = (self.input(), self.further());
        let with_input = |sample: &str, text: &str| {
            let receipt = sample.replace(&format!("\"{text}\""), &input).into_bytes();
            assert!((sample.len()..=MAX_BYTES).contains(&receipt.len()), "{self:?}: {} bytes", receipt.len());
            receipt
        };
        match self {
            Self::SdkMembers | Self::SdkValues | Self::SdkRefused => return with_input(SDK, "A short text."),
            Self::Layered => return with_input(LAYERED, "A long text."),
            _ => {}
        }
        let receipt = format!(
            r#"{{"signer":"runtime.sandbox.eth","verb":"summarize","input":{input},"output":{{}},"execution":{{}},"ts":"2026-01-01T00:00:00Z","metadata":{{"proof":{{"canonicalization":"json.sorted_keys.v1","hash_sha256":"{}"}}}},"signature":{{"alg":"ed25519","kid":"test-key-7","sig":"FqqygByQ1BIj3TgGvQXv+Ls3v1F24ma9LpcAhw5uyhfhadT+mfBNfcsObShhs+mi3j4OtMMfDUQyN7Ji7Uw/Cg=="}}{further}}}"#,
            "0".repeat(64)
        );
        assert!(receipt.len() <= MAX_BYTES, "{self:?}: {} bytes", receipt.len());
        receipt.into()
    }

    /// A request with the same input, which is then compared.
    pub(crate) fn request(self) -> Vec<u8> {
        let input = self.input();
        match self {
            Self::Layered => format!(r#"{{"payload":{{"content":{input}}}}}"#).into(),
            _ => format!(r#"{{"input":{input}}}"#).into(),
        }
    }
}
