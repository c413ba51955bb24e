//! The 37 standard aggregates (Part 13) as pure functions of raw values.
//!
//! - `compute`, `extreme`: one aggregate of one interval; [`interval`]: its raw values; [`bound`]: bounding values;
//! - `processed`: a time range of a store, divided into intervals.

#[cfg(test)]
mod annex_a;
pub mod bound;
mod compute;
mod extreme;
pub mod interval;
mod made;
#[cfg(test)]
mod naive;
pub(crate) mod processed;
#[cfg(test)]
mod tests;

use taktwerk_schema::AggregateConfiguration;
use taktwerk_schema::ids::object_ids as o;
use taktwerk_types::{NodeId, StatusCode};

pub use compute::compute;
pub use interval::Interval;

/// How aggregates treat values with a quality other than Good (AggregateConfiguration, Part 13 §4.2.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Configuration {
    /// Uncertain values are not used.
    pub treat_uncertain_as_bad: bool,
    /// Percentage of bad data from which a result is Bad.
    pub percent_data_bad: u8,
    /// Percentage of good data from which a result is Good.
    pub percent_data_good: u8,
    /// After the last value: true extends the line through the last two values, false holds the last value.
    pub use_sloped_extrapolation: bool,
}

impl Default for Configuration {
    /// The defaults of Part 13 §4.2.1.2.
    fn default() -> Self {
        Self {
            treat_uncertain_as_bad: true,
            percent_data_bad: 100,
            percent_data_good: 100,
            use_sloped_extrapolation: false,
        }
    }
}

impl Configuration {
    /// The configuration that a client requests, or `defaults` if it requests the server's.
    ///
    /// # Errors
    /// Bad_AggregateConfigurationRejected if the percentages contradict each other.
    pub fn requested(wanted: &AggregateConfiguration, defaults: Self) -> Result<Self, StatusCode> {
        if wanted.use_server_capabilities_defaults {
            return Ok(defaults);
        }
        let (good, bad) = (wanted.percent_data_good, wanted.percent_data_bad);
        if good > 100 || bad > 100 || u32::from(good) + u32::from(bad) < 100 {
            return Err(StatusCode::BAD_AGGREGATE_CONFIGURATION_REJECTED);
        }
        Ok(Self {
            treat_uncertain_as_bad: wanted.treat_uncertain_as_bad,
            percent_data_bad: bad,
            percent_data_good: good,
            use_sloped_extrapolation: wanted.use_sloped_extrapolation,
        })
    }

    /// Whether values of this quality are used.
    #[must_use]
    pub fn is_usable(&self, status: StatusCode) -> bool {
        if self.treat_uncertain_as_bad { status.is_good() } else { !status.is_bad() }
    }
}

macro_rules! aggregates {
    ($($name:ident = $id:ident),* $(,)?) => {
        /// A standard aggregate (Part 13 §5.4.3), with the specification's name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs)] // the specification's names
        pub enum Aggregate { $($name),* }

        impl Aggregate {
            /// All standard aggregates.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The numeric id of its AggregateFunction object in namespace 0.
            #[must_use]
            pub const fn id(self) -> u32 {
                match self { $(Self::$name => o::$id),* }
            }

            /// The BrowseName of its object.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),* }
            }
        }
    };
}

aggregates! {
    Interpolative = AGGREGATE_FUNCTION_INTERPOLATIVE,
    Average = AGGREGATE_FUNCTION_AVERAGE,
    TimeAverage = AGGREGATE_FUNCTION_TIME_AVERAGE,
    TimeAverage2 = AGGREGATE_FUNCTION_TIME_AVERAGE2,
    Total = AGGREGATE_FUNCTION_TOTAL,
    Total2 = AGGREGATE_FUNCTION_TOTAL2,
    Minimum = AGGREGATE_FUNCTION_MINIMUM,
    Maximum = AGGREGATE_FUNCTION_MAXIMUM,
    MinimumActualTime = AGGREGATE_FUNCTION_MINIMUM_ACTUAL_TIME,
    MaximumActualTime = AGGREGATE_FUNCTION_MAXIMUM_ACTUAL_TIME,
    Range = AGGREGATE_FUNCTION_RANGE,
    Minimum2 = AGGREGATE_FUNCTION_MINIMUM2,
    Maximum2 = AGGREGATE_FUNCTION_MAXIMUM2,
    MinimumActualTime2 = AGGREGATE_FUNCTION_MINIMUM_ACTUAL_TIME2,
    MaximumActualTime2 = AGGREGATE_FUNCTION_MAXIMUM_ACTUAL_TIME2,
    Range2 = AGGREGATE_FUNCTION_RANGE2,
    AnnotationCount = AGGREGATE_FUNCTION_ANNOTATION_COUNT,
    Count = AGGREGATE_FUNCTION_COUNT,
    DurationInStateZero = AGGREGATE_FUNCTION_DURATION_IN_STATE_ZERO,
    DurationInStateNonZero = AGGREGATE_FUNCTION_DURATION_IN_STATE_NON_ZERO,
    NumberOfTransitions = AGGREGATE_FUNCTION_NUMBER_OF_TRANSITIONS,
    Start = AGGREGATE_FUNCTION_START,
    End = AGGREGATE_FUNCTION_END,
    Delta = AGGREGATE_FUNCTION_DELTA,
    StartBound = AGGREGATE_FUNCTION_START_BOUND,
    EndBound = AGGREGATE_FUNCTION_END_BOUND,
    DeltaBounds = AGGREGATE_FUNCTION_DELTA_BOUNDS,
    DurationGood = AGGREGATE_FUNCTION_DURATION_GOOD,
    DurationBad = AGGREGATE_FUNCTION_DURATION_BAD,
    PercentGood = AGGREGATE_FUNCTION_PERCENT_GOOD,
    PercentBad = AGGREGATE_FUNCTION_PERCENT_BAD,
    WorstQuality = AGGREGATE_FUNCTION_WORST_QUALITY,
    WorstQuality2 = AGGREGATE_FUNCTION_WORST_QUALITY2,
    StandardDeviationSample = AGGREGATE_FUNCTION_STANDARD_DEVIATION_SAMPLE,
    StandardDeviationPopulation = AGGREGATE_FUNCTION_STANDARD_DEVIATION_POPULATION,
    VarianceSample = AGGREGATE_FUNCTION_VARIANCE_SAMPLE,
    VariancePopulation = AGGREGATE_FUNCTION_VARIANCE_POPULATION,
}

impl Aggregate {
    /// The NodeId of its AggregateFunction object.
    #[must_use]
    pub const fn node_id(self) -> NodeId {
        NodeId::numeric(0, self.id())
    }

    /// The aggregate with this object id.
    #[must_use]
    pub fn from_id(id: u32) -> Option<Self> {
        Self::ALL.iter().copied().find(|aggregate| aggregate.id() == id)
    }

    /// The aggregate with this name; case is ignored.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|aggregate| aggregate.name().eq_ignore_ascii_case(name))
    }
}

/// The aggregate bits of a StatusCode (Part 13 §5.3.3).
pub mod bits {
    /// The value was calculated.
    pub const CALCULATED: u32 = 1;
    /// The value was interpolated between raw values.
    pub const INTERPOLATED: u32 = 2;
    /// The interval is incomplete.
    pub const PARTIAL: u32 = 4;
    /// There are several such values.
    pub const MULTI_VALUE: u32 = 16;
}

/// A status with aggregate bits.
pub(crate) fn with_bits(status: StatusCode, bits: u32) -> StatusCode {
    if bits == 0 { status } else { StatusCode(status.0 | StatusCode::INFO_TYPE_DATA_VALUE | bits) }
}
