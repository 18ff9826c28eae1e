//! What is counted of the evidence and the evictions that the daemons of a fleet share.

use metrics::{counter, gauge};

use super::{BUS_MESSAGES, REDIS_UP, SHARED_READS, SHARED_WRITES};

/// Outcomes, each with its label.
macro_rules! outcomes {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $outcome:ident = $label:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$doc])* $outcome,)*
        }

        impl $name {
            const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$outcome => $label,)*
                }
            }
        }
    };
}

outcomes! {
    /// What became of shared evidence that was asked for.
    SharedRead {
        /// It gave the verdict.
        Taken = "taken",
        /// It gave the content: it is older than the hints that are remembered here, and the records were read here.
        Content = "content",
        /// There is none.
        Missing = "missing",
        /// This process has not seen a block yet.
        Early = "early",
        /// The server did not say in time.
        Gone = "gone",
        /// It is not of the fleet, of another version, or cut.
        Refused = "refused",
        /// It is no longer fresh, or not yet made.
        Aged = "aged",
        /// It is older than the first block that this process saw.
        OldBlock = "old-block",
        /// The name was evicted since.
        Evicted = "evicted",
        /// It is no evidence for the question, or gives another verdict than it says.
        Unfit = "unfit",
        /// Another daemon ran for it, and shared nothing in time.
        InVain = "in-vain",
    }
}

outcomes! {
    /// What became of evidence, or of an eviction, that was to be shared.
    SharedWrite {
        /// The evidence was written.
        Written = "written",
        /// The server did not take it in time.
        Gone = "gone",
        /// It was no longer fresh.
        Aged = "aged",
        /// Its name was evicted meanwhile.
        Evicted = "evicted",
        /// It is too long.
        Long = "long",
        /// It cannot be shown again from its bytes.
        Unprovable = "unprovable",
        /// Too much waits to be written.
        Dropped = "dropped",
        /// The eviction was published.
        Told = "told",
        /// The server did not take the eviction in time.
        Untold = "untold",
    }
}

outcomes! {
    /// What became of a message of the bus.
    Heard {
        /// The bus was joined.
        Joined = "joined",
        /// The bus was left: it broke, or said too much.
        Broken = "broken",
        /// The name was evicted.
        Evicted = "evicted",
        /// It is a message of this daemon.
        Own = "own",
        /// It is too short or too long.
        Length = "length",
        /// Its MAC is not one of the fleet.
        Mac = "mac",
        /// It names nothing that could be evicted.
        Form = "form",
        /// It was sent too long ago, or by a clock that is wrong.
        Old = "old",
        /// It came before.
        Replayed = "replayed",
    }
}

/// Whether the server of `[redis]` answered what it was asked last.
pub fn redis_is_up(is_up: bool) {
    gauge!(REDIS_UP).set(f64::from(u8::from(is_up)));
}

/// Shared evidence was asked for.
pub fn shared_read(outcome: SharedRead) {
    counter!(SHARED_READS, "outcome" => outcome.as_str()).increment(1);
}

/// Evidence or an eviction was to be shared.
pub fn shared_write(outcome: SharedWrite) {
    counter!(SHARED_WRITES, "outcome" => outcome.as_str()).increment(1);
}

/// A message of the bus came in, or the bus was joined or left.
pub fn bus_heard(outcome: Heard) {
    counter!(BUS_MESSAGES, "outcome" => outcome.as_str()).increment(1);
}
