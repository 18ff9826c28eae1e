//! The embedded world: everything that an agent publishes, made up in this process.

pub mod unixfs;
