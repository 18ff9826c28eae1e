//! CIDs, and the walk from a CID and a path to proven bytes. Pure: no I/O, no clock, no panic on any input.
