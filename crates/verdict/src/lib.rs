//! Turns evidence into a verdict: parses the card, applies the rules of a profile, runs the checks, and makes the
//! gate's decision. Every function is pure: no I/O, no clock, and no panic on any input.
//!
//! [`evidence`] holds everything that one resolution gathered. [`check`] judges the evidence under a [`profile`], and
//! [`build`] assembles the [`verdict`] from both.

pub mod build;
pub mod canonical;
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
