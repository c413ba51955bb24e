//! The gateway of a server: sources, tags and destinations of a configuration.

use crate::failure::Failure;
use taktwerk::{RunningServer, Server};
use taktwerk_config::{ConfigFile, NamedFile};

/// Numbers of sources, tags and destinations in a file.
pub(crate) struct Counts {
    pub(crate) sources: usize,
    pub(crate) tags: usize,
    pub(crate) destinations: usize,
}

/// Counts sources, tags and destinations, and checks them.
pub(crate) fn check(file: &ConfigFile) -> Result<Option<Counts>, Failure> {
    Ok(imp::load(file)?.map(|config| Counts {
        sources: config.sources.len(),
        tags: config.tag_count(),
        destinations: config.destinations.len(),
    }))
}

/// The files that the sections of the gateway name.
pub(crate) fn files(file: &ConfigFile) -> Result<Vec<NamedFile>, Failure> {
    imp::files(file)
}

/// What a running gateway has applied.
#[derive(Debug, Default)]
pub(super) struct Changed {
    /// The sections with changes.
    pub(super) sections: Vec<&'static str>,
    /// What remains to be known about them.
    pub(super) remarks: Vec<String>,
}

/// Warnings for files of the gateway's sections that do not exist yet.
pub(crate) fn missing_files(file: &ConfigFile) -> Vec<String> {
    imp::missing_files(file)
}

pub(super) use imp::{
    Newer, Prepared, Queues, Started, claimed, namespaces, prepare, prepare_adapters, register_namespace,
    rehearse,
};

#[cfg(feature = "gateway")]
mod imp {
    use super::{Changed, ConfigFile, Failure, NamedFile, RunningServer, Server};
    use crate::interrupt::Interrupt;
    use crate::serve::adapters;
    use crate::serve::profile::Others;
    use crate::serve::reference::References;
    use std::path::Path;
    use std::time::{Duration, Instant};
    use taktwerk::BuildError;
    /// The queues of destinations.
    pub(crate) use taktwerk_gateway::Destinations as Queues;
    use taktwerk_gateway::configuration::references;
    use taktwerk_gateway::destination::nodes::NodeField;
    use taktwerk_gateway::{
        Changes, Gateway, GatewayConfig, GatewayError, LeftQueue, PreparedGateway, SourceView,
    };
    use taktwerk_load::adapters::Adapters;
    use taktwerk_types::ExpandedNodeId;

    /// Nodes of tags whose sources are not started yet.
    #[derive(Default)]
    pub(crate) struct Prepared {
        gateway: Option<PreparedGateway>,
        required: Required,
    }

    /// Variables in the `fields` of destinations, which must exist.
    #[derive(Default)]
    pub(crate) struct Required(Vec<NodeField>);

    impl Required {
        fn of(config: &GatewayConfig) -> Self {
            Self(references::required_nodes(config))
        }

        /// Fails at the first variable that the server does not have.
        pub(crate) fn check(&self, file: &ConfigFile, known: &References<'_>) -> Result<(), Failure> {
            let find = |node: &ExpandedNodeId| known.find(&node.to_string()).err();
            match references::missing_nodes(file.path(), &self.0, find).first() {
                Some(mistake) => Err(Failure::Usage(mistake.to_string())),
                None => Ok(()),
            }
        }
    }

    /// Running sources.
    pub(crate) struct Started(Option<Gateway>);

    /// A validated configuration that can be applied.
    pub(crate) struct Newer(Option<GatewayConfig>);

    impl Newer {
        /// The namespace of the tags, which may have them only after a restart.
        pub(crate) fn namespace(&self) -> Option<&str> {
            self.0.as_ref().map(|config| config.namespace.as_str())
        }

        /// Whether destinations send variables that must exist.
        pub(crate) fn requires_nodes(&self) -> bool {
            self.0.as_ref().is_some_and(|config| !Required::of(config).0.is_empty())
        }
    }

    impl Started {
        /// Whether there are sources or destinations.
        #[cfg(feature = "web")]
        pub(crate) fn is_there(&self) -> bool {
            self.0.is_some()
        }

        /// The queues of the destinations.
        pub(crate) fn queues(&self) -> Queues {
            self.0.as_ref().map(Gateway::destinations).unwrap_or_default()
        }

        /// Waits until every tag has a value. The programs write the first values of all tags before further ones, and no rate limit
        /// applies to so many.
        pub(crate) fn wait_for_values(&self, interrupt: &Interrupt) -> Result<(), Failure> {
            let Some(gateway) = &self.0 else { return Ok(()) };
            let sources = gateway.sources();
            let begun = Instant::now();
            while !interrupt.asked() {
                let mut views = sources.views().into_iter();
                let Some(missing) = views.find(|view| view.statistics.values < view.tags as u64) else {
                    return Ok(());
                };
                if begun.elapsed() > adapters::READY_WITHIN {
                    let (written, within) = (missing.statistics.values, adapters::READY_WITHIN.as_secs());
                    let reason = missing.statistics.last_error;
                    let reason = reason.map_or_else(|| ", and no error".to_owned(), |it| format!(": {it}"));
                    return Err(Failure::Environment(format!(
                        "{} has written {written} of {} values within {within} s{reason}",
                        missing.name, missing.tags
                    )));
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            Ok(())
        }

        /// Shows the processes of sources that are programs.
        pub(crate) fn show_processes(&self, others: &Others) {
            let Some(gateway) = &self.0 else { return };
            others.set(|| {
                let sources = gateway.sources();
                Box::new(move || {
                    let views = sources.views().into_iter();
                    views.filter_map(|view| Some((view.name, view.statistics.process?))).collect()
                })
            });
        }

        /// Validates the sources and tags of a file. Nothing changes, except that the namespace of the first sources is
        /// registered.
        pub(crate) fn look(&self, file: &ConfigFile, running: &RunningServer) -> Result<Newer, Failure> {
            let config = load(file)?;
            if config.as_ref().is_some_and(GatewayConfig::historizes)
                && running.space().history_store().is_none()
            {
                return Err(Failure::Usage(format!(
                    "{}: a tag has historize = true, and this server was started without [history]. Restart the server to \
                     record it, or leave historize out until then",
                    file.path().display()
                )));
            }
            if let (None, Some(config)) = (&self.0, &config) {
                let namespace = running.namespace(&config.namespace);
                PreparedGateway::check(config, namespace).map_err(|error| explained(file, &error))?;
            }
            if let Some(gateway) = &self.0 {
                let empty = GatewayConfig::empty();
                gateway.check(config.as_ref().unwrap_or(&empty)).map_err(|error| explained(file, &error))?;
            }
            Ok(Newer(config))
        }

        /// Applies a validated configuration.
        pub(crate) fn take_over(
            &mut self,
            newer: Newer,
            file: &ConfigFile,
            running: &RunningServer,
        ) -> Result<Changed, Failure> {
            let Some(gateway) = &mut self.0 else {
                let Some(config) = newer.0 else { return Ok(Changed::default()) };
                let sections = sections(!config.sources.is_empty(), !config.destinations.is_empty());
                let namespace = running.namespace(&config.namespace);
                let gateway = PreparedGateway::within(config, namespace).and_then(PreparedGateway::start);
                self.0 = Some(gateway.map_err(|error| explained(file, &error))?);
                return Ok(Changed { sections, remarks: Vec::new() });
            };
            let applied = gateway.apply(newer.0.unwrap_or_else(GatewayConfig::empty));
            let applied = applied.map_err(|error| explained(file, &error))?;
            if !applied.has_changes() {
                return Ok(Changed::default());
            }
            for error in &applied.failed {
                tracing::warn!(
                    error,
                    "cannot add the node of a tag; other tags of the source are not affected"
                );
            }
            if applied.has_changed_sources() {
                tracing::info!(
                    added = applied.added.join(", "),
                    changed = applied.changed.join(", "),
                    removed = applied.removed.join(", "),
                    "sources"
                );
            }
            let Changes { added, changed, removed } = &applied.destinations;
            if !applied.destinations.is_empty() {
                tracing::info!(
                    added = added.join(", "),
                    changed = changed.join(", "),
                    removed = removed.join(", "),
                    "destinations"
                );
            }
            let sections = sections(applied.has_changed_sources(), !applied.destinations.is_empty());
            let remarks = applied.left.iter().map(left).collect::<Vec<_>>();
            for remark in &remarks {
                tracing::warn!("{remark}");
            }
            Ok(Changed { sections, remarks })
        }
    }

    fn sections(has_sources: bool, has_destinations: bool) -> Vec<&'static str> {
        let sources: &[&str] = if has_sources { &["source", "tag"] } else { &[] };
        sources.iter().copied().chain(has_destinations.then_some("destination")).collect()
    }

    /// What to say about a queue that no destination uses any more.
    fn left(left: &LeftQueue) -> String {
        let LeftQueue { destination, path, waiting } = left;
        let path = path.display();
        match waiting {
            0 => format!(
                "destination {destination}: its queue {path} is empty and no longer used; it can be deleted"
            ),
            waiting => {
                let values = crate::output::counted(usize::try_from(*waiting).unwrap_or(usize::MAX), "value");
                format!(
                    "destination {destination}: {values} not sent stay in its queue {path}. To send them, add the destination again \
                     with this queue"
                )
            }
        }
    }

    fn explained(file: &ConfigFile, error: &GatewayError) -> Failure {
        match error {
            GatewayError::Node { .. } | GatewayError::Queue(_) => {
                Failure::Usage(format!("{}: {error}", file.path().display()))
            }
            GatewayError::Threads(_) => Failure::Environment(error.to_string()),
        }
    }

    /// A NodeSet defines the namespace of the tags.
    pub(crate) fn claimed(file: &ConfigFile, error: &BuildError) -> Failure {
        Failure::Usage(format!("{}: [gateway] namespace: {error}", file.path().display()))
    }

    pub(super) fn files(file: &ConfigFile) -> Result<Vec<NamedFile>, Failure> {
        let files = taktwerk_gateway::files::named(file.path(), file.text());
        files.map_err(|mistake| Failure::Usage(mistake.to_string()))
    }

    pub(super) fn missing_files(file: &ConfigFile) -> Vec<String> {
        let missing = taktwerk_gateway::files::missing(file.path(), file.text()).unwrap_or_default();
        missing.iter().map(ToString::to_string).collect()
    }

    pub(super) fn load(file: &ConfigFile) -> Result<Option<GatewayConfig>, Failure> {
        let config = GatewayConfig::parse(file.path(), file.text());
        let config = config.map_err(|mistake| Failure::Usage(mistake.to_string()))?;
        if config.as_ref().is_some_and(GatewayConfig::historizes) && !file.config().history.has_store() {
            return Err(Failure::Usage(format!(
                "{}: tags with historize = true need a history store: set file = \"history.db\" under [history]",
                file.path().display()
            )));
        }
        Ok(config)
    }

    /// The namespaces that tags have, or may have after a reload.
    pub(crate) fn namespaces(file: &ConfigFile) -> Vec<String> {
        let own = load(file).ok().flatten().map(|config| config.namespace);
        own.into_iter().chain([taktwerk_gateway::NAMESPACE_DEFAULT.to_owned()]).collect()
    }

    /// Registers the namespace of a file's tags, so that its index does not depend on loaded NodeSets, and no NodeSet can
    /// define it.
    pub(crate) fn register_namespace(file: &ConfigFile, server: &Server) -> Result<(), Failure> {
        match load(file)? {
            Some(config) => {
                server.reserve_namespace(&config.namespace).map_err(|error| claimed(file, &error))
            }
            None => Ok(()),
        }
    }

    /// Adds the nodes of a file's tags.
    pub(crate) fn prepare(file: &ConfigFile, server: &Server) -> Result<Prepared, Failure> {
        let Some(config) = load(file)? else { return Ok(Prepared::default()) };
        let required = Required::of(&config);
        let prepared = PreparedGateway::new(config, server).map_err(|error| explained(file, &error))?;
        Ok(Prepared { gateway: Some(prepared), required })
    }

    /// Adds the nodes of adapters.
    pub(crate) fn prepare_adapters(adapters: &Adapters, server: &Server) -> Result<Prepared, Failure> {
        let text = adapters::configuration(adapters)?;
        let config = GatewayConfig::parse(Path::new("--adapters"), &text);
        let config = config.map_err(|mistake| Failure::Environment(mistake.to_string()))?;
        let gateway = config.map(|config| PreparedGateway::new(config, server)).transpose();
        let gateway = gateway.map_err(|error| Failure::Environment(error.to_string()))?;
        Ok(Prepared { gateway, ..Prepared::default() })
    }

    /// Adds the nodes of a file's tags to a server that exists only for a check. Opens no queue and contacts no source.
    pub(crate) fn rehearse(file: &ConfigFile, server: &Server) -> Result<Required, Failure> {
        let Some(config) = load(file)? else { return Ok(Required::default()) };
        let required = Required::of(&config);
        let prepared = PreparedGateway::new(config.without_destinations(), server);
        prepared.map_err(|error| explained(file, &error))?;
        Ok(required)
    }

    impl Prepared {
        /// Fails if a destination sends a variable that the server does not have.
        pub(crate) fn check(&self, file: &ConfigFile, known: &References<'_>) -> Result<(), Failure> {
            self.required.check(file, known)
        }

        /// Starts the sources.
        pub(crate) fn start(self) -> Result<Started, Failure> {
            let started = self.gateway.map(PreparedGateway::start).transpose();
            let started = started.map_err(|error| Failure::Environment(error.to_string()))?;
            if let Some(gateway) = &started {
                for source in gateway.sources().views() {
                    tell!("source {}: {}, {}", source.name, source.description, tags(&source));
                }
                for view in gateway.destinations().views() {
                    let waiting = match view.counters.queued {
                        0 => String::new(),
                        queued => format!(", {queued} values waiting"),
                    };
                    tell!("destination {}: {}{waiting}", view.name, view.description);
                }
            }
            Ok(Started(started))
        }
    }

    /// The variables of a source, as far as they are known.
    fn tags(source: &SourceView) -> String {
        let tags = crate::output::counted(source.tags, "tag");
        match source.adds {
            None => tags,
            Some(adds) if source.tags == 0 => format!("{adds} when it is connected"),
            Some(adds) => format!("{tags}, and {adds} when it is connected"),
        }
    }

    #[cfg(feature = "web")]
    impl Started {
        /// The data of sources and destinations for the dashboard and `/metrics`.
        pub(crate) fn extras(&self) -> crate::serve::web::OfGateway {
            use std::sync::Arc;
            let Some(gateway) = self.0.as_ref() else { return Default::default() };
            let (sources, destinations) = (gateway.sources(), gateway.destinations());
            let collectors: [Arc<dyn taktwerk_web::Collector>; 2] = [
                Arc::new(metrics::SourceMetrics(sources.clone())),
                Arc::new(metrics::DestinationMetrics(destinations.clone())),
            ];
            (collectors.to_vec(), Some(Arc::new(list::Listed(sources, destinations))))
        }
    }

    #[cfg(feature = "web")]
    mod list {
        use taktwerk_gateway::{DestinationView, Destinations, SourceView, Sources};
        use taktwerk_types::UtcTime;
        use taktwerk_web::sources::{DestinationState, SourceList, SourceState};

        /// The lists for the dashboard.
        #[derive(Debug)]
        pub(super) struct Listed(pub(super) Sources, pub(super) Destinations);

        impl SourceList for Listed {
            fn sources(&self) -> Vec<SourceState> {
                self.0.views().into_iter().map(state).collect()
            }

            fn destinations(&self) -> Vec<DestinationState> {
                self.1.views().into_iter().map(destination).collect()
            }
        }

        fn millis(time: UtcTime) -> i64 {
            time.unix_nanos().div_euclid(1_000_000) as i64
        }

        fn destination(view: DestinationView) -> DestinationState {
            let counted = view.counters;
            DestinationState {
                name: view.name,
                description: view.description,
                is_connected: counted.is_connected,
                queued: counted.queued,
                parked: counted.parked,
                queued_bytes: counted.queued_bytes,
                queue_bytes_max: view.queue_bytes_max,
                oldest: counted.oldest.map(millis),
                sent: counted.sent,
                dropped: counted.overrun + counted.evicted + counted.expired + counted.damaged,
                refused: counted.refused,
                errors: counted.errors,
                last_sent: counted.last_sent.map(millis),
                last_error: counted.last_error,
                loss: counted.loss,
            }
        }

        fn state(view: SourceView) -> SourceState {
            let counted = view.statistics;
            SourceState {
                name: view.name,
                description: view.description,
                is_connected: counted.is_connected,
                tags: view.tags as u64,
                uncertain: counted.uncertain,
                lost: counted.lost,
                requests: counted.requests,
                answers: counted.answers,
                errors: counted.errors,
                values: counted.values,
                dropped: counted.dropped + counted.replaced,
                invalid: counted.invalid,
                missed: counted.missed,
                write_errors: counted.write_errors,
                last_answer: counted.last_answer.map(millis),
                last_error: counted.last_error,
                incomplete: counted.incomplete,
            }
        }
    }

    #[cfg(feature = "web")]
    mod metrics {
        use std::fmt;
        use taktwerk_gateway::destination::counters::Snapshot as Sent;
        use taktwerk_gateway::statistics::Snapshot;
        use taktwerk_gateway::{DestinationView, Destinations, Sources};
        use taktwerk_web::Collector;
        use taktwerk_web::exposition::Exposition;

        /// Metrics of all sources. The number of series is bounded, because names of sources come from the
        /// configuration.
        #[derive(Debug)]
        pub(super) struct SourceMetrics(pub(super) Sources);

        const COUNTERS: [Column<Snapshot>; 11] = [
            ("requests", "Requests to the source", |it| it.requests as f64),
            ("answers", "Answers and messages of the source", |it| it.answers as f64),
            ("errors", "Requests and connections that failed", |it| it.errors as f64),
            ("values", "Values stored in tags", |it| it.values as f64),
            ("invalid_values", "Values that do not fit their tag's type", |it| it.invalid as f64),
            ("dropped_values", "Values and messages discarded", |it| it.dropped as f64),
            (
                "replaced_values",
                "Values replaced by a newer one of their tag before they could be stored",
                |it| it.replaced as f64,
            ),
            ("missed_values", "Times that a tag's value was late", |it| it.missed as f64),
            ("writes", "Values written to the source", |it| it.writes as f64),
            ("write_errors", "Values that could not be written", |it| it.write_errors as f64),
            ("connections", "Connections made", |it| it.connections as f64),
        ];

        const GAUGES: [Column<Snapshot>; 5] = [
            ("incomplete", "1 if some data of the source is missing", |it| {
                f64::from(u8::from(it.incomplete.is_some()))
            }),
            ("connected", "1 if the source is connected", |it| f64::from(u8::from(it.is_connected))),
            ("uncertain_tags", "Tags with Uncertain_LastUsableValue", |it| it.uncertain as f64),
            ("lost_tags", "Tags with Bad_NoCommunication", |it| it.lost as f64),
            ("last_answer_timestamp_seconds", "Time of the last answer, since 1970", |it| {
                it.last_answer.map_or(0.0, |time| time.unix_nanos() as f64 / 1e9)
            }),
        ];

        /// Metrics of all destinations.
        #[derive(Debug)]
        pub(super) struct DestinationMetrics(pub(super) Destinations);

        const SENT_COUNTERS: [Column<Sent>; 9] = [
            ("accepted_values", "Values written to the queue", |it| it.accepted as f64),
            ("sent_values", "Values that the destination has confirmed", |it| it.sent as f64),
            ("batches", "Batches that the destination has confirmed", |it| it.batches as f64),
            ("errors", "Failed attempts to send, and errors of the queue", |it| it.errors as f64),
            ("refused_values", "Values that the destination refuses", |it| it.refused as f64),
            ("overrun_values", "Values dropped before they reached the queue", |it| it.overrun as f64),
            ("evicted_values", "Values dropped because the queue was full", |it| it.evicted as f64),
            ("expired_values", "Values dropped because they were too old", |it| it.expired as f64),
            ("damaged_values", "Values whose block in the queue cannot be read", |it| it.damaged as f64),
        ];

        const SENT_GAUGES: [Column<Sent>; 5] = [
            ("connected", "1 if the last attempt to send succeeded", |it| {
                f64::from(u8::from(it.is_connected))
            }),
            ("queued_values", "Values in the queue", |it| it.queued as f64),
            ("queued_bytes", "Bytes of the values in the queue", |it| it.queued_bytes as f64),
            ("parked_values", "Values waiting for single variables while others are sent", |it| {
                it.parked as f64
            }),
            (
                "oldest_timestamp_seconds",
                "Time of the oldest value in the queue, since 1970; 0 if empty",
                |it| it.oldest.map_or(0.0, |time| time.unix_nanos() as f64 / 1e9),
            ),
        ];

        /// Name, help text and value of a series.
        type Column<T> = (&'static str, &'static str, fn(&T) -> f64);

        /// Writes counters and gauges with a label for the name.
        fn write<T>(
            out: &mut Exposition<'_>,
            thing: &'static str,
            rows: &[(String, &T)],
            counters: &[Column<T>],
            gauges: &[Column<T>],
        ) -> fmt::Result {
            let series = |of: fn(&T) -> f64| -> Vec<_> {
                rows.iter().map(|(name, counted)| ((thing, name.clone()), of(counted))).collect()
            };
            for (name, help, of) in counters {
                out.counters(&format!("taktwerk_{thing}_{name}"), help, series(*of))?;
            }
            for (name, help, of) in gauges {
                out.gauges(&format!("taktwerk_{thing}_{name}"), help, series(*of))?;
            }
            Ok(())
        }

        impl Collector for DestinationMetrics {
            fn collect(&self, out: &mut Exposition<'_>) -> fmt::Result {
                let views = self.0.views();
                // Without sources or destinations, their metrics are omitted.
                if views.is_empty() {
                    return Ok(());
                }
                let rows: Vec<_> = views.iter().map(|view| (view.name.clone(), &view.counters)).collect();
                write(out, "destination", &rows, &SENT_COUNTERS, &SENT_GAUGES)?;
                let series = |of: fn(&DestinationView) -> u64| {
                    let rows = views.iter().map(|view| (("destination", view.name.clone()), of(view) as f64));
                    rows.collect::<Vec<_>>()
                };
                out.gauges(
                    "taktwerk_destination_unwritten_values",
                    "Values in memory that are not in the queue yet",
                    series(|view| view.unwritten),
                )?;
                out.gauges(
                    "taktwerk_destination_queue_limit_bytes",
                    "Capacity of the queue",
                    series(|view| view.queue_bytes_max),
                )
            }
        }

        impl Collector for SourceMetrics {
            fn collect(&self, out: &mut Exposition<'_>) -> fmt::Result {
                let views = self.0.views();
                let rows: Vec<_> = views.iter().map(|view| (view.name.clone(), &view.statistics)).collect();
                write(out, "source", &rows, &COUNTERS, &GAUGES)?;
                let tags = views.iter().map(|view| (("source", view.name.clone()), view.tags as f64));
                out.gauges("taktwerk_source_tags", "Tags of the source", tags.collect::<Vec<_>>())
            }
        }
    }
}

#[cfg(not(feature = "gateway"))]
mod imp {
    use super::{Changed, ConfigFile, Failure, NamedFile, RunningServer, Server};

    #[derive(Default)]
    pub(crate) struct Prepared;
    pub(crate) struct Started;

    /// Without the feature, no gateway exists.
    pub(super) struct Never {
        pub(super) sources: Vec<()>,
        pub(super) destinations: Vec<()>,
    }

    impl Never {
        pub(super) fn tag_count(&self) -> usize {
            0
        }
    }

    /// Fails if the file has sections of a gateway: a backup without their files would not be complete.
    pub(super) fn files(file: &ConfigFile) -> Result<Vec<NamedFile>, Failure> {
        load(file).map(|_| Vec::new())
    }

    pub(super) fn missing_files(_: &ConfigFile) -> Vec<String> {
        Vec::new()
    }

    pub(super) fn load(file: &ConfigFile) -> Result<Option<Never>, Failure> {
        let config = file.config();
        if config.source.is_empty() && config.tag.is_empty() && config.destination.is_empty() {
            return Ok(None);
        }
        Err(Failure::Usage(format!(
            "{}: [[source]]: this program was built without the feature `gateway`",
            file.path().display()
        )))
    }

    pub(crate) fn namespaces(_: &ConfigFile) -> Vec<String> {
        Vec::new()
    }

    pub(crate) fn claimed(file: &ConfigFile, error: &taktwerk::BuildError) -> Failure {
        Failure::Usage(format!("{}: {error}", file.path().display()))
    }

    pub(crate) fn register_namespace(file: &ConfigFile, _: &Server) -> Result<(), Failure> {
        load(file).map(drop)
    }

    pub(crate) fn prepare(file: &ConfigFile, _: &Server) -> Result<Prepared, Failure> {
        load(file).map(|_| Prepared)
    }

    pub(crate) fn prepare_adapters(
        _: &taktwerk_load::adapters::Adapters,
        _: &Server,
    ) -> Result<Prepared, Failure> {
        Err(Failure::Usage("--adapters: this program was built without the feature `gateway`".to_owned()))
    }

    pub(crate) fn rehearse(file: &ConfigFile, _: &Server) -> Result<Prepared, Failure> {
        load(file).map(|_| Prepared)
    }

    impl Prepared {
        pub(crate) fn check(
            &self,
            _: &ConfigFile,
            _: &crate::serve::reference::References<'_>,
        ) -> Result<(), Failure> {
            Ok(())
        }

        pub(crate) fn start(self) -> Result<Started, Failure> {
            Ok(Started)
        }
    }

    pub(crate) struct Newer;

    impl Newer {
        pub(crate) fn namespace(&self) -> Option<&str> {
            None
        }

        pub(crate) fn requires_nodes(&self) -> bool {
            false
        }
    }

    /// Without the feature, no queues exist.
    #[derive(Clone, Default)]
    pub(crate) struct Queues;

    impl Queues {
        pub(crate) fn flush(&self) {}
    }

    impl Started {
        pub(crate) fn queues(&self) -> Queues {
            Queues
        }

        pub(crate) fn wait_for_values(&self, _: &crate::interrupt::Interrupt) -> Result<(), Failure> {
            Ok(())
        }

        pub(crate) fn show_processes(&self, _: &crate::serve::profile::Others) {}

        #[cfg(feature = "web")]
        pub(crate) fn is_there(&self) -> bool {
            false
        }

        pub(crate) fn look(&self, file: &ConfigFile, _: &RunningServer) -> Result<Newer, Failure> {
            load(file).map(|_| Newer)
        }

        pub(crate) fn take_over(
            &mut self,
            _: Newer,
            _: &ConfigFile,
            _: &RunningServer,
        ) -> Result<Changed, Failure> {
            Ok(Changed::default())
        }
    }

    #[cfg(feature = "web")]
    impl Started {
        pub(crate) fn extras(&self) -> crate::serve::web::OfGateway {
            Default::default()
        }
    }
}
