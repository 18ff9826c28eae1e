//! The words that a row of a governance log must contain to cover a change: the code, the name of what changed, or its
//! value. Pure.

use super::difference::AuditChange;
use super::governance_log::{GovernanceAction, GovernanceLogRow};
use clresolve_core::digest::Digest;
use clresolve_core::reason::ReasonCode;
use clresolve_core::text::UntrustedText;

/// Maximum length of a value that a draft contains in full, in characters: a digest with its prefix fits.
const MAX_VALUE_CHARACTERS: usize = 72;

/// Length of a truncated value's start in a draft, in characters. Its digest follows.
const KEPT_CHARACTERS: usize = 40;

/// Number of digits of that digest: enough against accidental collisions.
const DIGEST_DIGITS: usize = 12;

/// Minimum length of a value by which a row mentions a change, in characters: shorter ones occur in any text.
const LEAST_CHARACTERS: usize = 8;

/// Number of leading digits by which a row may refer to a digest or an address, after its prefix.
const LEAST_DIGITS: usize = 8;

/// A value as a draft contains it. The digest of a long value keeps truncated values distinct.
pub(super) fn shorten_value(value: &str) -> String {
    if value.chars().count() <= MAX_VALUE_CHARACTERS {
        return value.to_owned();
    }
    let start: String = value.chars().take(KEPT_CHARACTERS).collect();
    format!("{start}… (sha256:{})", &Digest::compute(value.as_bytes()).to_hex()[..DIGEST_DIGITS])
}

/// Whether a row mentions a change: by a word for what changed, or by its old or new value.
pub(super) fn mentions_change(row: &GovernanceLogRow, change: &AuditChange) -> bool {
    let text = row_text(row);
    let values = [&change.before, &change.after].into_iter().flatten();
    change.kind.change_words().log_words.iter().any(|word| mentions_word(&text, word))
        || values.into_iter().any(|value| mentions_value(&text, value))
}

pub(super) fn mentions_code(row: &GovernanceLogRow, code: ReasonCode) -> bool {
    mentions_word(&row_text(row), code.slug())
}

/// Whether a row states that its name is trusted or fixed.
pub(super) fn mentions_trust(row: &GovernanceLogRow) -> bool {
    let text = row_text(row);
    ["trusted", "corrected", "restored"].iter().any(|word| mentions_word(&text, word))
}

fn row_text(row: &GovernanceLogRow) -> String {
    let action = row.action.map_or("", GovernanceAction::as_str);
    format!("{action} {} {}", row.decision, row.reason).to_lowercase()
}

/// Whether a text contains a word that is not part of a longer word or a code.
fn mentions_word(text: &str, word: &str) -> bool {
    let continues = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        !before.ends_with(continues) && !after.starts_with(continues)
    })
}

/// Whether a text contains a value: in full, as in a draft, or by the first digits of a digest or an address.
fn mentions_value(text: &str, value: &str) -> bool {
    // Addresses follow their coin type, and missing updates precede their message.
    let parts = [value, value.split_once(": ").map_or(value, |(_, part)| part)];
    parts.into_iter().any(|part| {
        let forms = [
            UntrustedText::new(part).to_string(),
            shorten_value(part),
            hex_prefix(part).unwrap_or_default().to_owned(),
        ];
        let mut forms = forms.into_iter().filter(|form| form.chars().count() >= LEAST_CHARACTERS);
        forms.any(|form| text.contains(&form.to_lowercase()))
    })
}

/// The first digits of a digest or an address, with the prefix.
fn hex_prefix(value: &str) -> Option<&str> {
    let prefix = ["sha256:", "0x"].into_iter().find(|prefix| value.starts_with(prefix))?;
    let digits = value[prefix.len()..].bytes().take_while(u8::is_ascii_hexdigit).count();
    (digits >= LEAST_DIGITS).then(|| &value[..prefix.len() + LEAST_DIGITS])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::difference::AuditChangeKind;
    use crate::governance_log::{GovernanceLog, GovernanceTableLayout};
    use crate::log_check::draft_of;

    const OLD: &str = "https://runtime.example/agents/of/the/first/publisher/with/a/long/path/before/what/differs/v1/a";
    const NEW: &str = "https://runtime.example/agents/of/the/first/publisher/with/a/long/path/before/what/differs/v1/b";

    fn change(kind: AuditChangeKind, before: &str, after: &str) -> AuditChange {
        AuditChange { name: "a.eth".to_owned(), kind, before: Some(before.to_owned()), after: Some(after.to_owned()) }
    }

    fn row(decision: &str, reason: &str) -> GovernanceLogRow {
        let head = "| date | subject | kind | decision | reason |\n|---|---|---|---|---|\n";
        let log = GovernanceLog::parse(format!("{head}| 2026-11-20 | a.eth | change | {decision} | {reason} |\n"));
        log.rows.into_iter().next().expect("a row")
    }

    #[test]
    fn row_covers_a_change_only_by_its_word_or_value() {
        let address = "0xd8da6bf26964af9d7eed9e03e53415d37aa96045";
        let payee =
            change(AuditChangeKind::Payee, "60: 0x0000000000000000000000000000000000000001", &format!("60: {address}"));
        for text in [
            "new payee announced",
            "The Payee is another",
            "pays 0xd8da6bf2… from now on",
            address,
            &address.to_uppercase().replace('X', "x"),
            "was 0x0000000000000000000000000000000000000001",
        ] {
            assert!(mentions_change(&row("accepted", text), &payee), "{text}");
            assert!(mentions_change(&row(text, "announced"), &payee), "{text}");
        }
        for text in ["the logo on the home page is blue now", "payees-unproven", "0xd8da", "accepted", "owner", "60"] {
            assert!(!mentions_change(&row("accepted", text), &payee), "{text}");
        }
        let version = change(AuditChangeKind::Version, "1.0.0", "2");
        assert!(!mentions_change(&row("2 logos", "1.0.0 is out"), &version), "short values stand in any text");
        assert!(mentions_change(&row("accepted", "version 2"), &version));
        for kind in AuditChangeKind::ALL {
            let logo = row("accepted", "the logo on the home page is blue now");
            assert!(!mentions_change(&logo, &change(kind, OLD, NEW)), "{kind}");
        }
        assert!(mentions_code(&row("a", "`checksum-mismatch` (CL-50)"), ReasonCode::ChecksumMismatch));
        assert!(!mentions_code(&row("a", "not-checksum-mismatch"), ReasonCode::ChecksumMismatch));
    }

    /// The kinds of published data, which drafts are about.
    fn published() -> Vec<AuditChangeKind> {
        AuditChangeKind::ALL.into_iter().filter(|kind| kind.is_logged()).collect()
    }

    #[test]
    fn two_long_values_stay_apart_when_they_are_shortened() {
        let [old, new] = [OLD, NEW].map(shorten_value);
        assert!(
            old != new && old.starts_with("https://runtime.example/") && old.chars().count() <= MAX_VALUE_CHARACTERS
        );
        let draft = draft_of(&change(AuditChangeKind::Endpoint, OLD, NEW));
        assert!(draft.reason.contains(&old) && draft.reason.contains(&new), "{draft:?}");
    }

    proptest! {
        /// The draft of any change can be parsed, and covers the change.
        #[test]
        fn the_draft_of_any_change_is_read_back_and_tells_of_it(
            kind in proptest::sample::select(published()),
            subject in ".{1,80}",
            before in proptest::option::of(".{0,300}"),
            after in proptest::option::of(".{0,300}"),
        ) {
            let change = AuditChange { name: subject, kind, before, after };
            let draft = draft_of(&change);
            for form in [GovernanceTableLayout::Published, GovernanceTableLayout::Plain] {
                let log = GovernanceLog::parse(format!("{}{}\n", form.table_head_markdown(), draft.markdown(form)));
                let row = log.rows.into_iter().next().expect("a row");
                prop_assert!(mentions_change(&row, &change), "{:?}", row);
                let read = crate::LogRowDraft {
                    date: row.date.to_string(),
                    subject: row.subject,
                    kind: row.kind,
                    action: row.action.unwrap_or(draft.action),
                    decision: row.decision,
                    reason: row.reason,
                };
                prop_assert_eq!(&read, &draft);
            }
        }
    }
}
