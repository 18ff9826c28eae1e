//! From evidence to a verdict: what a card says, the rules that it is judged by, the checks, and what the gate makes of
//! the verdict. It does no I/O, reads no clock, and panics on no input.
//!
//! [`evidence`] is everything that a run found out. [`check`] judges it under a [`profile`], and [`build`] builds the
//! [`verdict`] of the two.

pub mod build;
pub mod card;
pub mod check;
pub mod evidence;
pub mod gate;
pub mod incident;
pub mod manifest;
pub mod profile;
pub mod published;
#[cfg(any(test, feature = "unstable"))]
pub mod sample;
pub mod schema;
pub mod trust;
pub mod verdict;
