//! The daemon of clresolve: HTTP API, gate, explorer, tools of the Model Context Protocol, metrics and traces.
//!
//! The entry point is [`http::HttpDaemon`].

#[cfg(unix)]
pub mod exposed_path;
pub mod http;
pub mod mcp;
mod port_holder;
mod registries;
mod traces;
