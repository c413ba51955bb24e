//! The C-GW paper: round-trip delay over access networks, why some answers are late, and what uses the gateway's CPU.

mod outliers;
mod profile;
mod round_trip;

use super::Experiment;

pub(super) static ALL: [&dyn Experiment; 3] =
    [&round_trip::RoundTrip, &outliers::Outliers, &profile::Profile];
