//! The C-GW paper: round-trip delay over access networks, causes of late answers, and the CPU profile of the gateway.

mod outliers;
mod profile;
mod round_trip;

use super::Experiment;

pub(super) static ALL: [&dyn Experiment; 3] =
    [&round_trip::RoundTrip, &outliers::Outliers, &profile::Profile];
