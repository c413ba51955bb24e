//! Methods that add and remove connections, groups, writers and readers (Part 14 §9.1.3.4, §9.1.3.5, §9.1.5 to §9.1.8).

use super::{Inputs, Outcome, called_on, passed, usable};
use crate::pubsub_model::live::Live;
use std::sync::Arc;
use taktwerk_pubsub::config::reserve::Kind;
use taktwerk_pubsub::config::{
    Configuration, Connection, ConversionError, DataSetReader, DataSetWriter, Element, ReaderGroup,
    WriterGroup,
};
use taktwerk_schema::{
    DataSetReaderDataType, DataSetWriterDataType, PubSubConnectionDataType, ReaderGroupDataType,
    WriterGroupDataType,
};
use taktwerk_server::callback::CallContext;
use taktwerk_types::StatusCode;

const UNKNOWN: StatusCode = StatusCode::BAD_NODE_ID_UNKNOWN;
const DUPLICATE: StatusCode = StatusCode::BAD_BROWSE_NAME_DUPLICATED;

fn understood<T>(converted: Result<T, ConversionError>) -> Result<T, StatusCode> {
    converted.map_err(|error| {
        tracing::info!(%error, "an element of the PubSub configuration was refused");
        StatusCode::BAD_INVALID_ARGUMENT
    })
}

/// Adds an element with `edit` and returns its node.
fn added(
    live: &Arc<Live>,
    caller: &CallContext,
    element: &Element,
    edit: impl FnOnce(&mut Configuration) -> Result<(), StatusCode>,
) -> Outcome {
    usable(element.name())?;
    live.change_for(caller, |configuration, _| edit(configuration))?;
    Ok(vec![live.node(element).into()])
}

fn removed(live: &Arc<Live>, caller: &CallContext, edit: impl FnOnce(&mut Configuration) -> bool) -> Outcome {
    live.change_for(caller, |configuration, _| if edit(configuration) { Ok(()) } else { Err(UNKNOWN) })?;
    Ok(Vec::new())
}

/// Removes the first match.
fn take_out<T>(list: &mut Vec<T>, fits: impl Fn(&T) -> bool) -> bool {
    let at = list.iter().position(fits);
    at.map(|at| list.remove(at)).is_some()
}

pub(super) fn add_connection(live: &Arc<Live>, caller: &CallContext, inputs: &mut Inputs) -> Outcome {
    let mut connection =
        understood(Connection::from_schema(&inputs.structure::<PubSubConnectionDataType>()?))?;
    if connection.publisher_id.is_none() {
        connection.publisher_id = Some(live.default_publisher_id(&connection.transport_profile_uri));
    }
    let element = Element::Connection { name: connection.name.clone() };
    added(live, caller, &element, |configuration| {
        if configuration.connection(&connection.name).is_some() {
            return Err(DUPLICATE);
        }
        configuration.connections.push(connection);
        Ok(())
    })
}

pub(super) fn remove_connection(live: &Arc<Live>, caller: &CallContext, inputs: &mut Inputs) -> Outcome {
    let Element::Connection { name } = passed(live, inputs)? else { return Err(UNKNOWN) };
    removed(live, caller, |configuration| take_out(&mut configuration.connections, |one| one.name == name))
}

pub(super) fn add_writer_group(live: &Arc<Live>, caller: &CallContext, inputs: &mut Inputs) -> Outcome {
    let Element::Connection { name } = called_on(live, caller)? else {
        return Err(StatusCode::BAD_NODE_ID_INVALID);
    };
    let mut group = understood(WriterGroup::from_schema(&inputs.structure::<WriterGroupDataType>()?))?;
    if group.writer_group_id == 0 {
        let configuration = live.states.configuration();
        let id = live.inner().reservations.next(Kind::Group, &configuration);
        group.writer_group_id = id.ok_or(StatusCode::BAD_RESOURCE_UNAVAILABLE)?;
    }
    let element = Element::WriterGroup { connection: name.clone(), name: group.name.clone() };
    added(live, caller, &element, |configuration| {
        let connection = configuration.connection_mut(&name).ok_or(UNKNOWN)?;
        has_no_group(connection, &group.name)?;
        connection.writer_groups.push(group);
        Ok(())
    })
}

pub(super) fn add_reader_group(live: &Arc<Live>, caller: &CallContext, inputs: &mut Inputs) -> Outcome {
    let Element::Connection { name } = called_on(live, caller)? else {
        return Err(StatusCode::BAD_NODE_ID_INVALID);
    };
    let group = understood(ReaderGroup::from_schema(&inputs.structure::<ReaderGroupDataType>()?))?;
    let element = Element::ReaderGroup { connection: name.clone(), name: group.name.clone() };
    added(live, caller, &element, |configuration| {
        let connection = configuration.connection_mut(&name).ok_or(UNKNOWN)?;
        has_no_group(connection, &group.name)?;
        connection.reader_groups.push(group);
        Ok(())
    })
}

/// Groups of both kinds share one set of names, because they have the same parent.
fn has_no_group(connection: &Connection, name: &str) -> Result<(), StatusCode> {
    let is_taken = connection.writer_group(name).is_some() || connection.reader_group(name).is_some();
    if is_taken { Err(DUPLICATE) } else { Ok(()) }
}

pub(super) fn remove_group(live: &Arc<Live>, caller: &CallContext, inputs: &mut Inputs) -> Outcome {
    let of = called_on(live, caller)?;
    let group = passed(live, inputs)?;
    removed(live, caller, |configuration| match &group {
        Element::WriterGroup { connection, name } if connection == of.name() => {
            let connection = configuration.connection_mut(connection);
            connection.is_some_and(|one| take_out(&mut one.writer_groups, |group| group.name == *name))
        }
        Element::ReaderGroup { connection, name } if connection == of.name() => {
            let connection = configuration.connection_mut(connection);
            connection.is_some_and(|one| take_out(&mut one.reader_groups, |group| group.name == *name))
        }
        _ => false,
    })
}

pub(super) fn add_writer(live: &Arc<Live>, caller: &CallContext, inputs: &mut Inputs) -> Outcome {
    let Element::WriterGroup { connection, name: group } = called_on(live, caller)? else {
        return Err(StatusCode::BAD_NODE_ID_INVALID);
    };
    let mut writer = understood(DataSetWriter::from_schema(&inputs.structure::<DataSetWriterDataType>()?))?;
    if writer.data_set_writer_id == 0 {
        let configuration = live.states.configuration();
        let id = live.inner().reservations.next(Kind::Writer, &configuration);
        writer.data_set_writer_id = id.ok_or(StatusCode::BAD_RESOURCE_UNAVAILABLE)?;
    }
    let element =
        Element::Writer { connection: connection.clone(), group: group.clone(), name: writer.name.clone() };
    added(live, caller, &element, |configuration| {
        let connection = configuration.connection_mut(&connection).ok_or(UNKNOWN)?;
        let group = connection.writer_group_mut(&group).ok_or(UNKNOWN)?;
        if group.writer(&writer.name).is_some() {
            return Err(DUPLICATE);
        }
        group.writers.push(writer);
        Ok(())
    })
}

pub(super) fn remove_writer(live: &Arc<Live>, caller: &CallContext, inputs: &mut Inputs) -> Outcome {
    let of = called_on(live, caller)?;
    let Element::Writer { connection, group, name } = passed(live, inputs)? else { return Err(UNKNOWN) };
    if of != (Element::WriterGroup { connection: connection.clone(), name: group.clone() }) {
        return Err(UNKNOWN);
    }
    removed(live, caller, |configuration| {
        let group = configuration.connection_mut(&connection).and_then(|one| one.writer_group_mut(&group));
        group.is_some_and(|group| take_out(&mut group.writers, |writer| writer.name == name))
    })
}

pub(super) fn add_reader(live: &Arc<Live>, caller: &CallContext, inputs: &mut Inputs) -> Outcome {
    let Element::ReaderGroup { connection, name: group } = called_on(live, caller)? else {
        return Err(StatusCode::BAD_NODE_ID_INVALID);
    };
    let reader = understood(DataSetReader::from_schema(&inputs.structure::<DataSetReaderDataType>()?))?;
    let element =
        Element::Reader { connection: connection.clone(), group: group.clone(), name: reader.name.clone() };
    added(live, caller, &element, |configuration| {
        let connection = configuration.connection_mut(&connection).ok_or(UNKNOWN)?;
        let group = connection.reader_group_mut(&group).ok_or(UNKNOWN)?;
        if group.reader(&reader.name).is_some() {
            return Err(DUPLICATE);
        }
        group.readers.push(reader);
        Ok(())
    })
}

pub(super) fn remove_reader(live: &Arc<Live>, caller: &CallContext, inputs: &mut Inputs) -> Outcome {
    let of = called_on(live, caller)?;
    let Element::Reader { connection, group, name } = passed(live, inputs)? else { return Err(UNKNOWN) };
    if of != (Element::ReaderGroup { connection: connection.clone(), name: group.clone() }) {
        return Err(UNKNOWN);
    }
    removed(live, caller, |configuration| {
        let group = configuration.connection_mut(&connection).and_then(|one| one.reader_group_mut(&group));
        group.is_some_and(|group| take_out(&mut group.readers, |reader| reader.name == name))
    })
}
