//! Is this request what the agent's schema demands? And what would be? No I/O, no clock.
//!
//! | module | holds |
//! |---|---|
//! | [`question`] | what is asked |
//! | [`judge`](mod@judge) | the request against the schema, each finding with its place |
//! | [`document`] | what is said of a request, in its written form |
//! | [`template`] | a request that follows the schema, to be filled in |

pub mod document;
pub mod judge;
pub mod question;
pub mod template;

pub use document::Checked;
pub use judge::{RequestJudgement, judge};
pub use question::RequestQuestion;
pub use template::Template;
