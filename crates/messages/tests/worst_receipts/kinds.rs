//! The most expensive receipts of 256 KiB, one per cause.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clresolve_messages::receipt::MAX_BYTES;
use clresolve_messages::receipt::question::MAX_QUESTION_BYTES;
use clresolve_payment::settlement::MAX_DECISION_BYTES;
use clresolve_payment::signed::MAX_HEADER_BYTES;

const SDK: &str = include_str!("../../../sandbox/src/receipts/sdk.json");
const LAYERED: &str = include_str!("../../../sandbox/src/receipts/runtime-core.json");

/// The cause that makes a receipt expensive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The maximum number of values, in one list.
    Values,
    /// The maximum number of values, as members in the wrong order.
    Members,
    /// The maximum depth around a long text, which is parsed once more per level.
    Levels,
    /// The maximum depth around more values than are allowed. The receipt is refused.
    Nested,
    /// Characters that the canonical form escapes.
    Escapes,
    /// Three-byte characters.
    Wide,
    /// Numbers with many digits.
    Numbers,
    /// Numbers with long exponents, and with the maximum number of digits that a double is printed with.
    Exponents,
    /// Numbers near the smallest double.
    Subnormals,
    /// The maximum number of unsigned members.
    Unsigned,
    /// Unsigned members with long names.
    Names,
    /// x402's own receipt with the longest JWS.
    Jws,
    /// A receipt of the SDKs with members in the wrong order. Two canonical forms are tried, and the bound schema
    /// checks each member.
    SdkMembers,
    /// A receipt of the SDKs with the maximum number of values. The bound schema tries an alternative in vain for each,
    /// then another.
    SdkValues,
    /// A receipt of the SDKs with values that the bound schema rejects.
    SdkRefused,
    /// A receipt of runtime-core with members in the wrong order.
    Layered,
    /// Numbers with many digits in a receipt of seven families' shapes. It is signed under none, so every canonical
    /// form is tried.
    Shapes,
}

impl Kind {
    pub(crate) const ALL: [Self; 17] = [
        Self::Values,
        Self::Members,
        Self::Levels,
        Self::Nested,
        Self::Escapes,
        Self::Wide,
        Self::Numbers,
        Self::Exponents,
        Self::Subnormals,
        Self::Unsigned,
        Self::Names,
        Self::Jws,
        Self::SdkMembers,
        Self::SdkValues,
        Self::SdkRefused,
        Self::Layered,
        Self::Shapes,
    ];

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
            Self::Nested => format!("{}{}{}", "[".repeat(13), list("1", room), "]".repeat(13)),
            Self::Escapes => format!("\"{}\"", r"\u0001".repeat(room / 6)),
            Self::Wide => format!("\"{}\"", "\u{ffff}".repeat(room / 3)),
            Self::Numbers | Self::Shapes => format!("[{}]", list(&format!("1.3{}", "0".repeat(27)), 8000)),
            Self::Exponents => format!("[{}]", list("2.0749139528992097e-294", 8000)),
            Self::Subnormals => format!("[{}]", list("1.2267798121760503e-307", 8000)),
            Self::Unsigned | Self::Names | Self::Jws => "{}".to_owned(),
        }
    }

    fn further(self) -> String {
        let (count, digits) = match self {
            Self::Unsigned => (8000, 5),
            Self::Names => (250, 1000),
            _ => return String::new(),
        };
        (0..count).map(|number| format!(r#","{number:0digits$}":0"#)).collect()
    }

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
            Self::Shapes => return of_seven_shapes(&input).into(),
            _ => {}
        }
        let receipt = format!(
            r#"{{"signer":"runtime.sandbox.eth","verb":"summarize","input":{input},"output":{{}},"execution":{{}},"ts":"2026-01-01T00:00:00Z","metadata":{{"proof":{{"canonicalization":"json.sorted_keys.v1","hash_sha256":"{}"}}}},"signature":{{"alg":"ed25519","kid":"test-key-7","sig":"FqqygByQ1BIj3TgGvQXv+Ls3v1F24ma9LpcAhw5uyhfhadT+mfBNfcsObShhs+mi3j4OtMMfDUQyN7Ji7Uw/Cg=="}}{further}}}"#,
            "0".repeat(64)
        );
        assert!(receipt.len() <= MAX_BYTES, "{self:?}: {} bytes", receipt.len());
        receipt.into()
    }

    /// The question about this receipt, as the body of `POST /v1/receipts/verify`, with its request and a purchase of
    /// maximum size. It is padded with spaces.
    pub(crate) fn question(self, name: &str) -> Vec<u8> {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("JSON is UTF-8");
        let (receipt, request) = (text(self.receipt()), text(self.request()));
        let (decision, payment, settlement) = (decision(name), header(&payment()), header(&settlement()));
        let mut question = format!(
            r#"{{"name":"{name}","receipt":{receipt},"request":{request},"decision":{decision},"payment":"{payment}","settlement":"{settlement}"}}"#
        );
        assert!(question.len() <= MAX_QUESTION_BYTES, "{self:?}: {} bytes", question.len());
        question.push_str(&" ".repeat(MAX_QUESTION_BYTES - question.len()));
        question.into_bytes()
    }

    /// A request with the same input, so that the inputs are compared.
    pub(crate) fn request(self) -> Vec<u8> {
        let input = self.input();
        match self {
            // With as many values, the request would be refused before the receipt is read.
            Self::Nested => b"{}".into(),
            Self::Layered => format!(r#"{{"payload":{{"content":{input}}}}}"#).into(),
            _ => format!(r#"{{"input":{input}}}"#).into(),
        }
    }
}

/// A receipt with the shapes of A1, A2, B1, B2, B3, C and E, each with a well-formed signature.
fn of_seven_shapes(input: &str) -> String {
    let (signature, hash) = (STANDARD.encode([1; 64]), "0".repeat(64));
    let of_execution = format!(r#"{{"type":"execution","signature":{{"value":"{signature}"}}}}"#);
    let proof = format!(
        r#"{{"alg":"ed25519-sha256","canonical":"cl-stable-json-v1","hash_sha256":"{hash}","signature_b64":"{signature}","hash":{{"value":"{hash}"}},"signature":{{"value":"{signature}"}}}}"#
    );
    format!(
        r#"{{"signer":"runtime.sandbox.eth","verb":"summarize","input":{input},"output":{{}},"execution":{{}},"ts":"2026-01-01T00:00:00Z","schema":"clas.execution.receipt.v1","clas":"1.0","proofs":[{of_execution}],"version":"1.1.0","family":"trust-verification","proof":{{"signature":"{signature}"}},"signature":{{"sig":"{signature}"}},"metadata":{{"proof":{proof}}}}}"#
    )
}

const ADDRESS: &str = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";

/// A decision of maximum size and with the maximum number of values. Its digest covers its canonical form.
fn decision(name: &str) -> String {
    let members: String = (0..4000).rev().map(|number| format!(r#","{number:08}":0"#)).collect();
    let decision = format!(
        r#"{{"schema":"clresolve.decision/1","id":"sha256:00","name":"{name}","verb":"summarize","abort":false,"entries":[{{"index":0,"abort":false,"codes":[]}}],"valid_until":"2026-01-01T00:00:00Z","price":{{"network":"eip155:84532","asset":"{ADDRESS}","amount":"10000"}},"payee":{{"address":"{ADDRESS}"}},"route":{{"url":"https://api.example.org/summarize/v1"}}{members}}}"#
    );
    assert!(decision.len() <= MAX_DECISION_BYTES, "{} bytes", decision.len());
    decision
}

fn header(document: &str) -> String {
    let header = STANDARD.encode(document);
    assert!(header.len() <= MAX_HEADER_BYTES, "{} bytes", header.len());
    header
}

/// A seller's reply with the maximum number of values.
fn settlement() -> String {
    let (transaction, further) = ("ab".repeat(32), "0,".repeat(1000));
    format!(
        r#"{{"success":true,"transaction":"0x{transaction}","network":"eip155:84532","payer":"{ADDRESS}","x":[{further}0]}}"#
    )
}

/// A payment header of maximum size.
fn payment() -> String {
    let word = "0".repeat(64);
    let extra = "0,".repeat(1500);
    format!(
        r#"{{"x402Version":2,"accepted":{{"scheme":"exact","network":"eip155:84532","amount":"10000","asset":"{ADDRESS}","maxTimeoutSeconds":60,"payTo":"{ADDRESS}","extra":{{"name":"USDC","version":"2","x":[{extra}0],"y":"{}"}}}},"payload":{{"signature":"0x{}","authorization":{{"from":"{ADDRESS}","to":"{ADDRESS}","value":"10000","validAfter":"0","validBefore":"1800000000","nonce":"0x{word}"}}}}}}"#,
        "x".repeat(8000),
        "11".repeat(65),
    )
}
