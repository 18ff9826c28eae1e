//! Names of the light client's metrics.

/// Metric name: responses of beacon endpoints that violate a rule, counted per endpoint.
pub const BEACON_LIES: &str = "clresolve_beacon_lies_total";

/// Metric name: responses of beacon endpoints that are not used, counted per endpoint and cause.
pub const BEACON_REFUSED: &str = "clresolve_beacon_refused_total";

/// Metric name: time of the finalized header that the light client verified.
pub const BEACON_FINALIZED_TIME: &str = "clresolve_beacon_finalized_timestamp_seconds";

/// Metric name: time of the newest header that the light client verified.
pub const BEACON_OPTIMISTIC_TIME: &str = "clresolve_beacon_optimistic_timestamp_seconds";

/// Metric name: share of the sync committee that signed the last verified update.
pub const BEACON_PARTICIPATION: &str = "clresolve_beacon_participation_ratio";
