//! Tests of the store: rules with synthetic updates, official vectors, mainnet data, changed bytes, saved states.

mod bytes;
mod chain;
mod cost;
mod data;
mod encodings;
mod hostile;
mod mainnet;
mod replay;
mod rules;
mod saved;
mod signatures;
mod specification;
mod vectors;
