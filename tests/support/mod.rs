//! What the scenario tests share: the scenarios as data, one world that holds all of them, and the judge.

pub(crate) mod judge;
pub(crate) mod scenario;
pub(crate) mod stage;
