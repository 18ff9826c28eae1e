//! The program `clresolve`. To embed the resolver, use the crate `clresolve-resolver`.

pub mod cli;
mod plan;
