//! Builds the address space of a configuration for a check, to find references to missing nodes before the server
//! starts. The addresses and files of the configuration are not used.

use super::reference::References;
use super::rules::Rules;
use super::{ServeError, configured, gateway, headroom, interop, plant};
use crate::failure::Failure;
use std::sync::Arc;
use taktwerk::Server;
use taktwerk::history::MemoryStore;
use taktwerk_config::ConfigFile;
use taktwerk_pki::Store;
use taktwerk_server::AddressSpace;

/// Builds the address space, and resolves all references of the configuration.
pub(crate) fn check(file: &ConfigFile) -> Result<(), Failure> {
    check_for(file, None)
}

/// [`check`] for a server that runs: nodes that the command line has added are known. The demo plant, the headroom and the
/// Methods for NodeSets are those that the server was started with, because changes of them wait for a restart.
pub(super) fn check_for(
    file: &ConfigFile,
    running: Option<(&AddressSpace, &ConfigFile)>,
) -> Result<(), Failure> {
    let started = running.map_or(file, |(_, started)| started);
    let failed =
        |error: taktwerk::StartError| Failure::Environment(format!("cannot check the nodes: {error}"));
    let config = file.config();
    // A free port on loopback, which is not announced or served.
    let mut builder =
        Server::builder().bind("127.0.0.1:0").anonymous().application_name(&config.server.application_name);
    // The server's own namespace is its ApplicationUri, which may be defined by the certificate only.
    let own = Store::at(file.resolve(&config.security.pki)).own(&mut Vec::new());
    let certified = own.first().and_then(|own| own.certificate.application_uri());
    if let Some(uri) = config.server.application_uri.as_deref().or(certified) {
        builder = builder.application_uri(uri);
    }
    if config.history.has_store() {
        builder = builder.history(Arc::new(MemoryStore::new(1)));
    }
    if let Some(headroom::Settings { prices, limit, admit }) = configured::headroom_of(started)? {
        builder = builder.headroom(prices, limit, admit);
    }
    let server = builder.build().map_err(failed)?;
    server.show_headroom().map_err(ServeError::from)?;
    let nodesets = configured::nodesets_of(file);
    if !nodesets.is_empty() {
        server.import_nodesets(&nodesets).map_err(ServeError::from)?;
    }
    // In the order of the start, because it determines the indexes of namespaces.
    let plant = started.config().server.simulated_plant.then(|| plant::start(&server, true)).transpose()?;
    gateway::register_namespace(file, &server)?;
    configured::nodeset_methods(started, &server)?;
    let references = References::of_check(file, server.space(), running.map(|(space, _)| space));
    let fields = gateway::rehearse(file, &server)?;
    configured::pubsub_files(file).check_nodes(|written| references.find(written))?;
    Rules::start(file, &server, &references)?;
    // Destinations may send variables of alarms.
    fields.check(file, &references)?;
    drop(plant);
    let mut namespaces = server.space().namespaces();
    // An option of the command line that the next start may have again.
    let is_interop = |uri: &String| uri == interop::NAMESPACE;
    namespaces.extend(running.and_then(|(space, _)| space.namespaces().into_iter().find(is_interop)));
    configured::check_namespaces(file, &namespaces)
}
