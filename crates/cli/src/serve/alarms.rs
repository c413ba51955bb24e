//! Alarms that a configuration names.

use super::history::node_id;
use crate::failure::Failure;
use std::time::Duration;
use taktwerk::alarms::{ConditionSpec, GroupKind, GroupSpec, Kind, Limits, Quantity};
use taktwerk::schema::ids::object_ids;
use taktwerk::server::ServerBuilder;
use taktwerk::{Server, Variant};
use taktwerk_config::{AlarmGroupSection, AlarmSection, ConfigFile, NormalValue};
use taktwerk_types::{BuiltInType, Identifier, NodeId};

/// Keeps states where the configuration says.
pub(super) fn configured(builder: ServerBuilder, file: &ConfigFile) -> ServerBuilder {
    match &file.config().alarms.file {
        Some(path) => builder.alarm_file(file.resolve(path)),
        None => builder,
    }
}

/// Adds the alarms that the configuration names.
pub(super) fn add(file: &ConfigFile, server: &Server) -> Result<(), Failure> {
    for section in &file.config().alarms.alarm {
        let text = section.variable.get_ref();
        let wrong = |why: &str| {
            Failure::Usage(format!(
                "[[alarms.alarm]] variable = \"{text}\": {why}. `taktwerk browse` shows the variables of a server"
            ))
        };
        let source = node_id(text, &server.space().namespaces())
            .filter(|id| server.space().contains(id))
            .ok_or_else(|| wrong("that is no variable of this server"))?;
        let spec = spec(section, source, server).map_err(|why| wrong(&why))?;
        server.add_condition(spec).map_err(|error| wrong(&error.to_string()))?;
    }
    for section in &file.config().alarms.group {
        let wrong = |why: &str| {
            Failure::Usage(format!("[[alarms.group]] name = \"{}\": {why}", section.name.get_ref()))
        };
        let spec = group(section, server).map_err(|why| wrong(&why))?;
        server.add_alarm_group(&spec).map_err(|error| wrong(&error.to_string()))?;
    }
    if let Some(minutes) = file.config().alarms.metrics_minutes {
        let wrong = |why: &str| Failure::Usage(format!("[alarms] metrics_minutes = {minutes}: {why}"));
        if minutes == 0 {
            return Err(wrong("use a number of minutes from 1 on, or leave it out"));
        }
        server.alarm_metrics(minutes).map_err(|error| wrong(&error.to_string()))?;
    }
    Ok(())
}

fn group(section: &AlarmGroupSection, server: &Server) -> Result<GroupSpec, String> {
    let namespaces = server.space().namespaces();
    let ids = |texts: &[String]| -> Result<Vec<NodeId>, String> {
        let id = |text: &String| node_id(text, &namespaces).ok_or_else(|| format!("{text} is no NodeId"));
        texts.iter().map(id).collect()
    };
    let kind = match (section.first_in_group, section.suppresses.is_empty()) {
        (true, false) => return Err("set either first_in_group or suppresses".to_owned()),
        (true, true) => GroupKind::FirstInGroup,
        (false, false) => GroupKind::Suppression,
        (false, true) => GroupKind::Related,
    };
    let members = ids(&section.members)?;
    let namespace = members.first().map_or(1, |id| id.namespace_index.max(1));
    let name = section.name.get_ref();
    let id = NodeId::string(namespace, format!("AlarmGroups/{name}"));
    let objects = NodeId::numeric(0, object_ids::OBJECTS_FOLDER);
    let suppresses = ids(&section.suppresses)?;
    Ok(GroupSpec { members, suppresses, ..GroupSpec::new(id, name, objects, kind) })
}

fn spec(section: &AlarmSection, source: NodeId, server: &Server) -> Result<ConditionSpec, String> {
    let limits = Limits {
        high_high: section.high_high,
        high: section.high,
        low: section.low,
        low_low: section.low_low,
        deadband: section.deadband,
    };
    let has_limits = limits.all().next().is_some();
    let kind = match (&section.normal, has_limits) {
        (Some(_), true) => return Err("set either limits or normal".to_owned()),
        (Some(normal), false) => Kind::OffNormal { normal: normal_value(normal, &source, server)? },
        (None, _) => Kind::Limit { quantity: Quantity::Level, limits, is_exclusive: !section.non_exclusive },
    };
    let name = match (&section.name, &kind) {
        (Some(name), _) => name.as_str(),
        (None, Kind::OffNormal { .. }) => "OffNormalAlarm",
        (None, _) => "LevelAlarm",
    };
    let base = match &source.identifier {
        Identifier::String(own) => own.as_str().to_owned(),
        Identifier::Numeric(own) => own.to_string(),
        _ => source.to_string(),
    };
    let id = NodeId::string(source.namespace_index.max(1), format!("{base}/{name}"));
    let mut spec = ConditionSpec::new(id, name, source.clone(), kind);
    spec.input = Some(source);
    if let Some(severity) = section.severity {
        spec.severities.inner = severity.clamp(1, 1000);
        spec.severities.outer = spec.severities.outer.max(spec.severities.inner);
    }
    if let Some(severity) = section.outer_severity {
        spec.severities.outer = severity.clamp(1, 1000);
    }
    let span = |name: &str, millis: f64| {
        let is_sound = millis.is_finite()
            && (0.0..=Duration::from_secs(366 * 86_400).as_millis() as f64).contains(&millis);
        if is_sound {
            Ok(millis)
        } else {
            Err(format!("{name} is a number of milliseconds from 0 to a year"))
        }
    };
    spec.rules.on_delay = span("on_delay", section.on_delay)?;
    spec.rules.off_delay = span("off_delay", section.off_delay)?;
    spec.rules.re_alarm_time = span("re_alarm", section.re_alarm)?;
    let shelving = span("max_shelving", section.max_shelving)?;
    spec.rules.shelving_time_max = (shelving > 0.0).then_some(shelving);
    spec.rules.confirms = section.confirm;
    spec.rules.latches = section.latching;
    spec.rules.keeps_branches = section.branches;
    Ok(spec)
}

/// A normal value as the type of the variable.
fn normal_value(normal: &NormalValue, source: &NodeId, server: &Server) -> Result<Variant, String> {
    let kind = server.space().declared_shape(source).map(|(_, kind)| kind);
    let not = || {
        format!(
            "normal is no value of the variable's type{}",
            kind.map(|kind| format!(" {kind}")).unwrap_or_default()
        )
    };
    let whole = |number: i64| -> Option<Variant> {
        Some(match kind? {
            BuiltInType::SByte => i8::try_from(number).ok()?.into(),
            BuiltInType::Byte => u8::try_from(number).ok()?.into(),
            BuiltInType::Int16 => i16::try_from(number).ok()?.into(),
            BuiltInType::UInt16 => u16::try_from(number).ok()?.into(),
            BuiltInType::Int32 => i32::try_from(number).ok()?.into(),
            BuiltInType::UInt32 => u32::try_from(number).ok()?.into(),
            BuiltInType::Int64 => number.into(),
            BuiltInType::UInt64 => u64::try_from(number).ok()?.into(),
            BuiltInType::Float => (number as f32).into(),
            BuiltInType::Double => (number as f64).into(),
            _ => return None,
        })
    };
    match (normal, kind) {
        (NormalValue::Boolean(value), Some(BuiltInType::Boolean)) => Ok((*value).into()),
        (NormalValue::Integer(value), _) => whole(*value).ok_or_else(not),
        (NormalValue::Number(value), Some(BuiltInType::Double)) => Ok((*value).into()),
        (NormalValue::Number(value), Some(BuiltInType::Float)) => Ok((*value as f32).into()),
        (NormalValue::Text(value), Some(BuiltInType::String)) => Ok(value.as_str().into()),
        _ => Err(not()),
    }
}
