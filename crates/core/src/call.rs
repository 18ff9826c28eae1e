//! Where requests and receipts identify their call, as JSON Pointers. Line 1.0.0 puts these members into `x402`; line
//! 1.1.0 and most receipts put them at the top level.

/// The verb of the call.
pub const VERB: [&str; 2] = ["/x402/verb", "/verb"];

/// The identifier of the request.
pub const REQUEST_ID: [&str; 2] = ["/x402/request_id", "/request_id"];

/// The version. In `x402` it is the version of the call; at the top level it is the version of the document. Compare
/// each only with the same pointer of the other document.
pub const VERSION: [&str; 2] = ["/x402/version", "/version"];
