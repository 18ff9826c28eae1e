//! Causes that evidence can record: typed in the resolution that met them, text in a replay.

use std::fmt::{self, Display};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A cause, for readers only: no decision depends on it. In JSON it is one string, its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveOrRecordedCause<E> {
    /// This resolution met the cause.
    Met(E),
    /// An earlier resolution recorded this message.
    Recorded(String),
}

impl<E> From<E> for LiveOrRecordedCause<E> {
    fn from(cause: E) -> Self {
        Self::Met(cause)
    }
}

impl<E: Display> Display for LiveOrRecordedCause<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Met(cause) => cause.fmt(f),
            Self::Recorded(words) => words.fmt(f),
        }
    }
}

impl<E: Display> Serialize for LiveOrRecordedCause<E> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, E> Deserialize<'de> for LiveOrRecordedCause<E> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::Recorded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::SourceUnavailableError;

    #[test]
    fn a_recorded_cause_reads_as_the_one_that_was_met() {
        let met = LiveOrRecordedCause::from(SourceUnavailableError::Status(404));
        let json = serde_json::to_string(&met).unwrap();
        assert_eq!(json, "\"HTTP status 404\"");
        let recorded: LiveOrRecordedCause<SourceUnavailableError> = serde_json::from_str(&json).unwrap();
        assert_eq!(recorded, LiveOrRecordedCause::Recorded("HTTP status 404".to_owned()));
        assert_eq!(recorded.to_string(), met.to_string());
        assert_eq!(serde_json::to_string(&recorded).unwrap(), json);
    }
}
