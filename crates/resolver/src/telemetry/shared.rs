//! Metrics of the evidence and the evictions that daemons share.

use metrics::{counter, gauge};

use super::{BUS_MESSAGES, REDIS_UP, SHARED_READS, SHARED_WRITES};

/// Declares outcomes with their label values.
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
    /// The outcome of reading shared evidence.
    SharedRead {
        /// It produced the verdict.
        Taken = "taken",
        /// Only its content was used: the evidence is older than the change notifications that this process remembers,
        /// and the records were read again.
        Content = "content",
        /// There is no shared evidence.
        Missing = "missing",
        /// This process has not seen a block yet.
        Early = "early",
        /// The server did not answer in time.
        Gone = "gone",
        /// The MAC, version or length is wrong.
        Refused = "refused",
        /// It is no longer fresh, or its time is in the future.
        Aged = "aged",
        /// It is older than the first block that this process saw.
        OldBlock = "old-block",
        /// The name has been evicted since.
        Evicted = "evicted",
        /// It is not evidence for the question, or yields another verdict than it claims.
        Unfit = "unfit",
        /// Another daemon was resolving the question, and shared nothing in time.
        InVain = "in-vain",
    }
}

outcomes! {
    /// The outcome of sharing evidence or an eviction.
    SharedWrite {
        /// The evidence was written.
        Written = "written",
        /// The server did not accept the evidence in time.
        Gone = "gone",
        /// The evidence was no longer fresh.
        Aged = "aged",
        /// The name was evicted meanwhile.
        Evicted = "evicted",
        /// The evidence is too long.
        Long = "long",
        /// The evidence cannot be reproduced from its bytes.
        Unprovable = "unprovable",
        /// The write queue is full.
        Dropped = "dropped",
        /// The eviction was published.
        Told = "told",
        /// The server did not accept the eviction in time.
        Untold = "untold",
    }
}

outcomes! {
    /// The outcome of a bus message.
    Heard {
        /// The bus was joined.
        Joined = "joined",
        /// The bus was left: the connection broke, or there were too many messages.
        Broken = "broken",
        /// The name was evicted.
        Evicted = "evicted",
        /// The message is this daemon's own.
        Own = "own",
        /// The message is too short or too long.
        Length = "length",
        /// The MAC is wrong.
        Mac = "mac",
        /// The message contains no name that could be evicted.
        Form = "form",
        /// The message is too old, or its sender's clock is wrong.
        Old = "old",
        /// The message was received before.
        Replayed = "replayed",
    }
}

/// Whether the Redis server answered the latest request.
pub fn redis_is_up(is_up: bool) {
    gauge!(REDIS_UP).set(f64::from(u8::from(is_up)));
}

/// Records a read of shared evidence.
pub fn shared_read(outcome: SharedRead) {
    counter!(SHARED_READS, "outcome" => outcome.as_str()).increment(1);
}

/// Records a write of evidence or an eviction.
pub fn shared_write(outcome: SharedWrite) {
    counter!(SHARED_WRITES, "outcome" => outcome.as_str()).increment(1);
}

/// Records a bus message, or that the bus was joined or left.
pub fn bus_heard(outcome: Heard) {
    counter!(BUS_MESSAGES, "outcome" => outcome.as_str()).increment(1);
}
