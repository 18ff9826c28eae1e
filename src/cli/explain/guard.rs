//! The codes of the guards for x402 clients (`clients/`). No daemon returns them.

use serde::Serialize;

/// The code of a guard's refusal.
#[derive(Clone, Copy, Serialize)]
pub(in crate::cli) struct ClientGuardCode {
    pub(in crate::cli) code: &'static str,
    /// What the code means.
    pub(super) title: &'static str,
    /// What the user of the guard should do.
    pub(super) next: &'static str,
}

const fn client_guard_code(code: &'static str, title: &'static str, next: &'static str) -> ClientGuardCode {
    ClientGuardCode { code, title, next }
}

/// Every code of every guard. `clients/README.md` has the same table.
pub(in crate::cli) const CODES: [ClientGuardCode; 8] = [
    client_guard_code(
        "denied",
        "clresolve denies the agent, or every entry of its terms.",
        "Read the codes behind it with `clresolve explain CODE`.",
    ),
    client_guard_code(
        "unavailable",
        "The daemon returned no usable answer; the message contains its URL and the cause.",
        "Check that it runs and is reachable.",
    ),
    client_guard_code("redirected", "The seller redirects.", "Use the agent's route (`clresolve route NAME VERB`)."),
    client_guard_code(
        "unreadable",
        "The 402 is too long, too slow, incomplete, or cannot be decoded.",
        "Retry if the connection broke; otherwise do not buy there.",
    ),
    client_guard_code(
        "no-decision",
        "A payment without a valid decision for its URL, or a second payment.",
        "Start with an unpaid request.",
    ),
    client_guard_code(
        "two-payments",
        "Two payment headers, or one with two values.",
        "Find the part of your program that adds the second.",
    ),
    client_guard_code(
        "payment-denied",
        "The signed payment differs from the allowed one.",
        "Look for a hook or selector that changes the terms.",
    ),
    client_guard_code(
        "other-protocol",
        "The request has credentials of `Payment`, `L402` or `LSAT`.",
        "Pay the agent by x402.",
    ),
];
