//! Checks a request against the agent's schema, and makes a template for a valid request. No I/O and no clock.
//!
//! | module | contents |
//! |---|---|
//! | [`question`] | the input: agent, verb and request |
//! | [`judge`](mod@judge) | validation of the request against the schema, with the position of each finding |
//! | [`document`] | the report as a JSON document |
//! | [`template`] | a request to fill in that follows the schema |

pub mod document;
pub mod judge;
pub mod question;
pub mod template;

pub use document::RequestCheckDocument;
pub use judge::{RequestJudgement, judge_request};
pub use question::OutgoingAgentRequest;
pub use template::RequestTemplate;
