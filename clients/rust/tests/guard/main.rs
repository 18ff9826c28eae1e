//! The guard against the stand-in daemon and the sellers of `../testing`, alone and below the published payment client.

mod any;
mod rules;
mod sdk;
mod world;
