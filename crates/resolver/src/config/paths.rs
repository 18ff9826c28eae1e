//! The paths in a configuration. Relative paths in a file are resolved against its folder, so that a file that is saved
//! elsewhere still refers to the same files.

use std::path::PathBuf;
use std::time::Duration;

use alloy_primitives::{Address, B256};
use clresolve_core::reason::Code;
use clresolve_payment::limits::Scheme;
use clresolve_verdict::gate::GateVerbs;
use clresolve_verdict::verdict::Depth;

use super::{
    BaseUrl, BlockSelector, ConnectTo, Endpoint, Gateway, Grade, Hedging, ListenAt, ManifestSource, OriginSpec,
    SocketPath,
};

/// Visits the paths in the value of a key. Every key's type implements it, so that no path is forgotten.
pub(super) trait EachPath {
    /// Applies `change` to each path.
    fn each_path(&mut self, change: &mut dyn FnMut(&mut PathBuf));
}

impl EachPath for PathBuf {
    fn each_path(&mut self, change: &mut dyn FnMut(&mut PathBuf)) {
        change(self);
    }
}

impl EachPath for ManifestSource {
    fn each_path(&mut self, change: &mut dyn FnMut(&mut PathBuf)) {
        match self {
            Self::File(path) => change(path),
            Self::Url { .. } => {}
        }
    }
}

impl<T: EachPath> EachPath for Option<T> {
    fn each_path(&mut self, change: &mut dyn FnMut(&mut PathBuf)) {
        self.iter_mut().for_each(|value| value.each_path(change));
    }
}

impl<T: EachPath> EachPath for Vec<T> {
    fn each_path(&mut self, change: &mut dyn FnMut(&mut PathBuf)) {
        self.iter_mut().for_each(|value| value.each_path(change));
    }
}

/// Types without a path.
macro_rules! without_paths {
    ($($type:ty),* $(,)?) => {$(
        impl $crate::config::paths::EachPath for $type {
            fn each_path(&mut self, _: &mut dyn FnMut(&mut std::path::PathBuf)) {}
        }
    )*};
}

pub(super) use without_paths;

without_paths!(
    Address,
    B256,
    BaseUrl,
    BlockSelector,
    Code,
    ConnectTo,
    Depth,
    Duration,
    Endpoint,
    GateVerbs,
    Gateway,
    Grade,
    Hedging,
    ListenAt,
    OriginSpec,
    Scheme,
    SocketPath,
    String,
    bool,
    u32,
    u64,
    usize,
);
