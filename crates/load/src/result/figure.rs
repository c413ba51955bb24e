//! Names of figures that reports, findings and comparisons take from documents.

/// A figure of a document, identified by its path.
///
/// Code uses these constants, so that renaming a member fails a test here instead of silently removing findings. Names
/// given by users (thresholds, `--metric`) are text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Figure(&'static str);

impl Figure {
    /// Its path, such as `server.cpu_percent`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0
    }
}

impl core::fmt::Display for Figure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.0)
    }
}

/// Declares the figures. Those of a current sensor are not in documents; the report adds them.
macro_rules! figures {
    ($($name:ident $place:literal),+ $(,)?) => {
        impl Figure {
            $(#[doc = concat!("`", $place, "`")] pub const $name: Self = Self($place);)+

            /// All figures.
            pub(super) const ALL: &[Self] = &[$(Self::$name),+];

            /// All figures.
            pub fn all() -> impl Iterator<Item = Self> + Clone {
                Self::ALL.iter().copied()
            }
        }
    };
}

figures! {
    CONNECTIONS_LOST "connections_lost",
    CYCLES "cycles",
    CYCLES_MISSED "cycles_missed",
    DELIVERY_P50_US "delivery.p50_us",
    DELIVERY_P99_US "delivery.p99_us",
    DRIFT_PPM "drift_ppm",
    ENERGY_J_PACKAGE "energy_j.package",
    FLOODING_MESSAGES_HEARD "flooding.messages_heard",
    FLOODING_MESSAGES_SENT "flooding.messages_sent",
    FLOODING_PACKETS_AT_JOINED "flooding.packets_at_joined",
    FLOODING_PACKETS_AT_UNJOINED "flooding.packets_at_unjoined",
    FLOODING_UNJOINED_PERCENT "flooding.unjoined_percent",
    GENERATOR_CPU_PERCENT "generator.cpu_percent",
    GENERATOR_MACHINE_PERCENT "generator.machine_percent",
    GENERATOR_RUNQUEUE_WAIT_S "generator.runqueue_wait_s",
    LATENCY_CORRECTED_P50_US "latency.corrected.p50_us",
    LATENCY_CORRECTED_P99_US "latency.corrected.p99_us",
    LATENCY_UNCORRECTED_COUNT "latency.uncorrected.count",
    LATENCY_UNCORRECTED_P50_US "latency.uncorrected.p50_us",
    LATENCY_UNCORRECTED_P99_US "latency.uncorrected.p99_us",
    LATENESS_P99_US "lateness.p99_us",
    LINK_EXPECTED_P50_MS "link.expected.p50_ms",
    LINK_ROUND_TRIPS_P50_MS "link.round_trips.p50_ms",
    LOST_MESSAGES "lost_messages",
    MAKING_P50_US "making.p50_us",
    MEAN_PERIOD_ERROR_NS "mean_period_error_ns",
    MESSAGE_INTERVAL_MEAN_US "message_interval.mean_us",
    NOTIFICATIONS "notifications",
    PER_SECOND "per_second",
    PROCESS_CPU_PERCENT "process_cpu_percent",
    PROGRESS_CYCLE_P50_MS "progress.cycle_p50_ms",
    PROGRESS_CYCLE_P99_MS "progress.cycle_p99_ms",
    PROGRESS_EXPECTED_PER_ITEM "progress.expected_per_item",
    PROGRESS_MIN_PER_ITEM "progress.min_per_item",
    PROGRESS_OVERFLOWS "progress.overflows",
    PROGRESS_WORST_ITEM_RATIO "progress.worst_item_ratio",
    PUBLISHER_CPU_NS_PER_SIGNAL "publisher_cpu_ns_per_signal",
    PUBLISHER_CPU_PERCENT "publisher_cpu_percent",
    ROUNDTRIP_COUNT "roundtrip.count",
    ROUNDTRIP_MEAN_US "roundtrip.mean_us",
    ROUNDTRIP_P50_US "roundtrip.p50_us",
    ROUNDTRIP_P99_US "roundtrip.p99_us",
    RUN_SPAN_MAX_US "run_span.max_us",
    RUN_SPAN_P50_US "run_span.p50_us",
    SERVER_CPU_PERCENT "server.cpu_percent",
    SERVER_CPU_S "server.cpu_s",
    SERVER_CPU_US_PER_REQUEST "server.cpu_us_per_request",
    SERVER_CPU_US_PER_SIGNAL "server.cpu_us_per_signal",
    SERVER_CYCLES "server.cycles",
    SERVER_INVOLUNTARY_SWITCHES "server.involuntary_switches",
    SERVER_MIGRATIONS "server.migrations",
    SERVER_RSS_BYTES "server.rss_bytes",
    SERVER_RSS_GROWTH_BYTES "server.rss_growth_bytes",
    SERVER_RUNQUEUE_WAIT_S "server.runqueue_wait_s",
    SERVER_SECONDS "server.seconds",
    SERVER_SYSTEM_S "server.system_s",
    SERVER_USER_S "server.user_s",
    SERVER_VOLUNTARY_SWITCHES "server.voluntary_switches",
    SIGNALS_PER_S "signals_per_s",
    SNOOPING_MESSAGES_HEARD "snooping.messages_heard",
    SNOOPING_MESSAGES_SENT "snooping.messages_sent",
    SNOOPING_PACKETS_AT_JOINED "snooping.packets_at_joined",
    SNOOPING_PACKETS_AT_UNJOINED "snooping.packets_at_unjoined",
    SNOOPING_UNJOINED_PERCENT "snooping.unjoined_percent",
    STARTED_UNIX_MS "started_unix_ms",
    STEADY "steady",
    SUPPLY_AMPERE "supply.ampere",
    SUPPLY_JOULE "supply.joule",
    TRANSACTION_MAX_US "transaction.max_us",
    TRANSACTION_P50_US "transaction.p50_us",
    TRANSFER_P50_US "transfer.p50_us",
    WINDOW_S "window_s",
    WIRE_ETHERNET_BYTES "wire.ethernet_bytes",
    WIRE_PAYLOAD_IN_BYTES "wire.payload_in_bytes",
    WIRE_PAYLOAD_OUT_BYTES "wire.payload_out_bytes",
    WIRE_TCP_IP_BYTES "wire.tcp_ip_bytes",
    WIRE_TOTAL_BYTES "wire.total_bytes",
}
