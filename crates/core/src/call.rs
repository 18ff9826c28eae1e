//! Where requests and receipts say which call they are about, as JSON Pointers: line 1.0.0 says it in `x402`, line 1.1.0 and
//! most receipts at the top.

/// The verb.
pub const VERB: [&str; 2] = ["/x402/verb", "/verb"];

/// The identifier of the request.
pub const REQUEST_ID: [&str; 2] = ["/x402/request_id", "/request_id"];

/// The version: of the call in `x402`, of the document itself at the top. So each is compared with its like alone.
pub const VERSION: [&str; 2] = ["/x402/version", "/version"];
