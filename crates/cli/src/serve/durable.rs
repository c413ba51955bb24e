//! The store of durable subscriptions of `taktwerk serve`.

use super::ServeArgs;
use crate::failure::Failure;
use std::path::Path;
use std::sync::Arc;
use taktwerk::server::{DurableConfig, ServerBuilder};
use taktwerk_config::ConfigFile;
use taktwerk_history::SubscriptionStore;

fn opened(path: &Path) -> Result<DurableConfig, Failure> {
    let store = SubscriptionStore::open(path).map_err(|error| Failure::Environment(error.message))?;
    Ok(DurableConfig::new(Arc::new(store)))
}

/// Uses the file of the command line, if given.
pub(super) fn keep(builder: ServerBuilder, arguments: &ServeArgs) -> Result<ServerBuilder, Failure> {
    match &arguments.durable {
        Some(path) => Ok(builder.durable_subscriptions(opened(path)?)),
        None => Ok(builder),
    }
}

/// Uses the file and the limits of a configuration, if given.
pub(super) fn configured(builder: ServerBuilder, file: &ConfigFile) -> Result<ServerBuilder, Failure> {
    let section = &file.config().durable_subscriptions;
    let Some(path) = &section.file else { return Ok(builder) };
    let mut durable = opened(&file.resolve(path))?;
    durable.lifetime_hours_max = section.lifetime_hours;
    durable.queue_size_max = section.queue_size;
    durable.bytes_per_user_max = section.megabytes_per_user.saturating_mul(1 << 20);
    durable.write_interval = f64::from(section.write_interval);
    Ok(builder.durable_subscriptions(durable))
}
