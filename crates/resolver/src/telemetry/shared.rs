//! Metrics of the evidence that daemons share.

use metrics::{counter, gauge};

use super::{REDIS_UP, SHARED_READS, SHARED_WRITES};

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
        /// There is no shared evidence.
        Missing = "missing",
        /// The server did not answer in time.
        Gone = "gone",
        /// The MAC, version or length is wrong.
        Refused = "refused",
        /// It is no longer fresh, or its time is in the future.
        Aged = "aged",
        /// The name has been evicted since.
        Evicted = "evicted",
        /// It is not evidence for the question, or yields another verdict than it claims.
        Unfit = "unfit",
        /// Another daemon was resolving the question, and shared nothing in time.
        InVain = "in-vain",
    }
}

outcomes! {
    /// The outcome of sharing evidence.
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
    }
}

/// Whether the Redis server answered the latest request.
pub fn set_redis_up(is_up: bool) {
    gauge!(REDIS_UP).set(f64::from(u8::from(is_up)));
}

/// Records a read of shared evidence.
pub fn count_shared_read(outcome: SharedRead) {
    counter!(SHARED_READS, "outcome" => outcome.as_str()).increment(1);
}

/// Records a write of evidence.
pub fn count_shared_write(outcome: SharedWrite) {
    counter!(SHARED_WRITES, "outcome" => outcome.as_str()).increment(1);
}
