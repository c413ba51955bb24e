//! Fuzz targets for every decoder and state machine that processes untrusted input.
//!
//! The targets are implemented in this library. `cargo test` replays the committed seeds and reproducible mutations of
//! them with any compiler, and the binaries in `fuzz_targets/` run them with libFuzzer. [`input`] turns bytes into
//! choices; [`server`] is a server without a network; [`targets`] contains the implementations; [`TARGETS`] lists them.
//!
//! `fuzz/run.sh` runs all targets for a short time; `cargo +nightly fuzz run --features libfuzzer TARGET` fuzzes one.
//! Add an input that made a target panic to `seeds/TARGET/`, together with the fix.

pub mod input;
pub mod server;
pub mod targets;

#[cfg(test)]
mod replay;
#[cfg(test)]
mod seeds;

/// A target: takes any bytes and panics if a guarantee of the code under test is violated.
pub type Target = fn(&[u8]);

/// All targets by name. Each has a libFuzzer binary of that name.
pub const TARGETS: &[(&str, Target)] = &[
    ("decode_variant", targets::decode::variant),
    ("decode_any_structure", targets::decode::any_structure),
    ("decode_extension_object", targets::decode::extension_object),
    ("decode_dynamic_structure", targets::dynamic::structure),
    ("chunk_reader_server", targets::chunk::server),
    ("chunk_reader_client", targets::chunk::client),
    ("server_bytes", targets::server::bytes),
    ("server_requests", targets::requests::run),
    ("server_sessions", targets::sessions::run),
    ("alarm_methods", targets::alarms::methods),
    ("alarm_stored", targets::alarms::stored),
    ("event_filters", targets::events::filters),
    ("file_methods", targets::files::methods),
    ("durable_log", targets::durable::log),
    ("history_stored", targets::history::stored),
    ("history_requests", targets::history::requests),
    ("query_requests", targets::query::requests),
    ("client_responses", targets::client::run),
    ("client_secured", targets::secured::run),
    ("secure_chunk", targets::crypto::chunk),
    ("encrypted_secret", targets::crypto::secret),
    ("jwt", targets::token::jwt),
    ("nodeset_xml", targets::nodeset::xml),
    ("node_id_text", targets::text::node_id),
    ("event_condition", targets::text::event_condition),
    ("numeric_range", targets::text::numeric_range),
    ("x509_certificate", targets::certificate::x509),
    ("x509_revocation_list", targets::certificate::revocation_list),
    ("x509_request", targets::certificate::request),
    ("certificate_validation", targets::certificate::validation),
    ("pubsub_uadp", targets::pubsub::uadp::run),
    ("pubsub_json", targets::pubsub::json::run),
    ("pubsub_discovery", targets::pubsub::discovery::run),
    ("pubsub_action", targets::pubsub::action::run),
    ("pubsub_configuration", targets::pubsub::configuration::run),
    ("gateway_queue", targets::gateway::queue),
    ("gateway_mqtt", targets::gateway::mqtt),
    ("gateway_program", targets::gateway::program),
    ("gateway_text", targets::gateway::text),
    ("gateway_sparkplug", targets::sources::sparkplug),
    ("gateway_line", targets::sources::line),
    ("gateway_replay", targets::sources::replay),
    ("gateway_http", targets::sources::http),
    ("gateway_can", targets::gateway::can),
    ("gateway_modbus", targets::gateway::modbus),
    ("gateway_configuration", targets::gateway::configuration),
];
