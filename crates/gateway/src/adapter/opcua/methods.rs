//! The methods of a mirror: their local arguments, and the forwarding of calls.

use super::OpcUa;
use super::bases::Bases;
use super::mirror::Method;
use super::passage;
use super::translation::Translation;
use crate::catalogue::Form;
use crate::feed::Feed;
use crate::opcua::address;
use crate::plant::{OnCall, Plant, Signature};
use crate::statistics::Count;
use std::sync::Arc;
use taktwerk_schema::Argument;
use taktwerk_schema::ids::data_type_ids;
use taktwerk_types::{NodeId, UaString};

/// Adds new methods. Methods whose arguments have a meaning only on their own server are skipped.
pub(super) fn add(
    server: &mut OpcUa,
    feed: &Feed,
    translation: &Translation,
    found: Vec<Method>,
    bases: &Bases,
    (namespaces, target): (&[UaString], &str),
) {
    let mut refused = 0;
    for method in found {
        let (object, node) = (address(&method.object, namespaces), address(&method.node, namespaces));
        if server.known_methods.len() >= feed.settings().nodes_max
            || server.known_methods.contains_key(&(object.clone(), node.clone()))
        {
            continue;
        }
        let Some(signature) = signature(method.signature, bases, feed.plant(), translation) else { continue };
        let path: Vec<String> = core::iter::once(feed.settings().name.clone()).chain(method.path).collect();
        let name = path.iter().chain([&method.name]).map(String::as_str).collect::<Vec<_>>().join("/");
        let key = (object.clone(), node.clone());
        let passage = Arc::clone(&server.passage);
        let on_call: OnCall = Arc::new(move |inputs| {
            let (passage, object, node) = (Arc::clone(&passage), object.clone(), node.clone());
            Box::pin(async move { passage.call(&object, &node, inputs).await })
        });
        match feed.add_method(&path, &method.name, signature, on_call) {
            // Only then the node of this name is the method, and is deleted with it.
            Ok(()) => drop(server.known_methods.insert(key, name)),
            Err(_) => refused += 1,
        }
    }
    if refused > 0 {
        feed.statistics().add(Count::Dropped, refused);
        feed.failed(&passage::left_out(target, refused));
    }
}

/// The arguments of a method with types of this server.
fn signature(
    signature: Signature,
    bases: &Bases,
    plant: &Plant,
    translation: &Translation,
) -> Option<Signature> {
    let here = |arguments: Vec<Argument>| -> Option<Vec<Argument>> {
        let here = |mut argument: Argument| {
            argument.data_type = data_type(&argument.data_type, bases, plant, translation)?;
            Some(argument)
        };
        arguments.into_iter().map(here).collect()
    };
    Some(Signature { inputs: here(signature.inputs)?, outputs: here(signature.outputs)? })
}

/// The local type of an argument: its own, if that was added and its values have the same meaning here. Otherwise the nearest
/// supertype in namespace 0, unless that is abstract.
fn data_type(kind: &NodeId, bases: &Bases, plant: &Plant, translation: &Translation) -> Option<NodeId> {
    if kind.namespace_index == 0 {
        return Some(kind.clone());
    }
    let is_known = |here: &NodeId| {
        plant.catalogue().form(here).is_some_and(Form::is_portable) && plant.space().contains(here)
    };
    if let Some(here) = translation.here(kind).filter(is_known) {
        return Some(here);
    }
    let base = bases.known(kind);
    let is_plain = base.ns0().is_some_and(|base| !matches!(base, 0 | data_type_ids::STRUCTURE));
    is_plain.then_some(base)
}
