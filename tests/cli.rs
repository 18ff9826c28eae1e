//! Everything that runs the program as a user does, and what is checked about the repository itself: its architecture
//! and its documents.

#[path = "cli/architecture.rs"]
mod architecture;
#[path = "cli/audit.rs"]
mod audit;
#[path = "cli/bundle.rs"]
mod bundle;
#[path = "cli/cards.rs"]
mod cards;
#[path = "cli/command_line.rs"]
mod command_line;
#[path = "cli/config.rs"]
mod config;
#[path = "cli/discover.rs"]
mod discover;
#[path = "cli/documents.rs"]
mod documents;
#[path = "cli/lint.rs"]
mod lint;
#[path = "cli/payments.rs"]
mod payments;
#[path = "cli/plan.rs"]
mod plan;
#[path = "cli/receipts.rs"]
mod receipts;
#[path = "cli/requests.rs"]
mod requests;
#[path = "cli/sign.rs"]
mod sign;
#[path = "cli/signature.rs"]
mod signature;
#[path = "cli/systems.rs"]
mod systems;

#[allow(dead_code, reason = "each program uses a part of the helpers")]
#[path = "support"]
mod support {
    pub(crate) mod corpus;
    pub(crate) mod disguise;
    pub(crate) mod documented_keys;
    pub(crate) mod orloj;
    pub(crate) mod payer;
    pub(crate) mod program;
    pub(crate) mod rfc8037;
    pub(crate) mod sandbox;
    pub(crate) mod serve;
    pub(crate) mod server;
}
