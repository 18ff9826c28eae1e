//! The program `clresolve`. Those who embed it depend on the crate `clresolve-resolver`.

pub mod cli;
mod plan;
