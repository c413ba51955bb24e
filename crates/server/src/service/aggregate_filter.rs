//! AggregateFilters of MonitoredItems: checks and results (Part 4 §7.22.4).

use super::monitored_item::{Answer, FilterResult};
use super::subscription_context::SubscriptionContext;
use crate::history::aggregate::bound::Rules;
use crate::history::aggregate::{Aggregate, Configuration};
use crate::space::NodeIx;
use crate::space::nodes::Nodes;
use crate::subscription::aggregate_item::AggregateSpec;
use crate::subscription::manage::Revised;
use taktwerk_schema::{AggregateConfiguration, AggregateFilter, AggregateFilterResult};
use taktwerk_types::{ExtensionObject, StatusCode};

/// Ticks per millisecond.
const MILLISECOND: f64 = 1e4;
/// The longest interval, in ms: a year.
const INTERVAL_MAX: f64 = 365.0 * 86_400e3;

/// Checks a filter; `None` for other filter types.
///
/// # Errors
/// Bad_FilterNotAllowed, Bad_MonitoredItemFilterInvalid, Bad_MonitoredItemFilterUnsupported or
/// Bad_AggregateConfigurationRejected.
pub(super) fn check(
    filter: &ExtensionObject,
    is_value: bool,
    nodes: &Nodes,
    node: NodeIx,
) -> Result<Option<AggregateSpec>, StatusCode> {
    if !filter.is::<AggregateFilter>() {
        return Ok(None);
    }
    if !is_value {
        return Err(StatusCode::BAD_FILTER_NOT_ALLOWED);
    }
    let invalid = StatusCode::BAD_MONITORED_ITEM_FILTER_INVALID;
    let filter: AggregateFilter = filter.decode().map_err(|_| invalid)?;
    let aggregate = filter.aggregate_type.ns0().and_then(Aggregate::from_id);
    // Annotations are not part of a value.
    let aggregate = aggregate.filter(|aggregate| *aggregate != Aggregate::AnnotationCount);
    let aggregate = aggregate.ok_or(StatusCode::BAD_MONITORED_ITEM_FILTER_UNSUPPORTED)?;
    let interval = filter.processing_interval;
    if !interval.is_finite() || interval <= 0.0 {
        return Err(invalid);
    }
    let history = nodes.history(node);
    let defaults = history.map_or_else(Configuration::default, |history| history.aggregates);
    let configuration = Configuration::requested(&filter.aggregate_configuration, defaults)?;
    let stepped = history.is_none_or(|history| history.stepped);
    Ok(Some(AggregateSpec {
        aggregate,
        start: filter.start_time,
        interval: (interval.min(INTERVAL_MAX) * MILLISECOND) as i64,
        rules: Rules::new(stepped, configuration),
    }))
}

/// The result for an item, with the revised filter if it has one.
pub(super) fn answer(
    context: &SubscriptionContext<'_>,
    place: u32,
    result: Result<Revised, StatusCode>,
) -> Answer {
    let spec = result.ok().and_then(|revised| context.engine.aggregate_of(place, revised.item_id));
    let filter_result = spec.map(|spec| {
        let configuration = spec.rules.configuration;
        FilterResult::Aggregate(Box::new(AggregateFilterResult {
            revised_start_time: spec.start,
            revised_processing_interval: spec.interval as f64 / MILLISECOND,
            revised_aggregate_configuration: AggregateConfiguration {
                use_server_capabilities_defaults: false,
                treat_uncertain_as_bad: configuration.treat_uncertain_as_bad,
                percent_data_bad: configuration.percent_data_bad,
                percent_data_good: configuration.percent_data_good,
                use_sloped_extrapolation: configuration.use_sloped_extrapolation,
            },
        }))
    });
    Answer { result, filter_result }
}
