//! Fuzz targets for every decoder and state machine that reads what others wrote.
//!
//! The bodies of the targets live here, in a plain library: `cargo test` replays the committed seeds and repeatable
//! mutations of them on any compiler, and the binaries in `fuzz_targets/` hand them to libFuzzer. [`input`] turns
//! bytes into choices; [`server`] is a server without a network; [`targets`] has the bodies; [`TARGETS`] names them.
//!
//! `fuzz/run.sh` runs everything for a short time; `cargo +nightly fuzz run --features libfuzzer TARGET` looks for more. An input that made
//! a target panic belongs into `seeds/TARGET/` together with the repair.

pub mod input;
pub mod server;
pub mod targets;

#[cfg(test)]
mod replay;
#[cfg(test)]
mod seeds;

/// A target: takes any bytes, panics if a promise of the code under test does not hold.
pub type Target = fn(&[u8]);

/// All targets by name. Each has a binary of that name for libFuzzer.
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
    ("gateway_can", targets::gateway::can),
    ("gateway_modbus", targets::gateway::modbus),
    ("gateway_configuration", targets::gateway::configuration),
];
