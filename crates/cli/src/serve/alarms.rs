//! Alarms of a configuration.

use super::reference::References;
use crate::failure::Failure;
use std::io::Read;
use std::path::Path;
use std::time::Duration;
use taktwerk::alarms::{AlarmError, ConditionSpec, Conditions, Kind, Limits, Quantity};
use taktwerk::event::FieldName;
use taktwerk::server::ServerBuilder;
use taktwerk::{QualifiedName, Server, Variant};
use taktwerk_config::{AlarmSection, ConfigFile, FieldValue};
use taktwerk_server::AddressSpace;
use taktwerk_types::{BuiltInType, ByteString, Identifier, NodeId};
use toml::Spanned;

/// Largest sound file, in bytes.
const SOUND_LEN_MAX: u64 = 1 << 20;

/// Configures the storage of alarm states, and the alarms of the server itself.
pub(super) fn configured(mut builder: ServerBuilder, file: &ConfigFile) -> Result<ServerBuilder, Failure> {
    let section = &file.config().alarms;
    if let Some(path) = &section.file {
        builder = builder.alarm_file(file.resolve(path));
    }
    let [certificate, trust_list] = own_spans(file)?;
    if let Some(before) = certificate {
        builder = builder.certificate_alarm(before);
    }
    if let Some(after) = trust_list {
        builder = builder.trust_list_alarm(after);
    }
    Ok(builder)
}

/// The spans of the alarms of the server itself: of its certificate, and of its trust list.
pub(super) fn own_spans(file: &ConfigFile) -> Result<[Option<Duration>; 2], Failure> {
    let section = &file.config().alarms;
    let own = |name: &str, millis: Option<f64>| -> Result<Option<Duration>, Failure> {
        let Some(millis) = millis else { return Ok(None) };
        let wrong = |why| Failure::Usage(file.mistake_of(&format!("alarms.{name}"), why, "").to_string());
        let millis = span(name, millis).map_err(wrong)?;
        Ok(Some(Duration::from_secs_f64(millis / 1e3)))
    };
    Ok([
        own("certificate_expires_before", section.certificate_expires_before)?,
        own("trust_list_update", section.trust_list_update)?,
    ])
}

/// An alarm of a configuration.
#[derive(Debug, Clone)]
pub(super) struct Defined {
    section: AlarmSection,
    spec: ConditionSpec,
}

impl Defined {
    /// An error of this alarm.
    fn wrong(section: &AlarmSection, references: &References<'_>, why: &str) -> Failure {
        let text = section.variable.get_ref();
        references.wrong(&section.variable, format!("[[alarms.alarm]] variable = \"{text}\": {why}"))
    }
}

/// The alarms that a configuration defines. A check skips those with unknown nodes. The nodes of an alarm that is in
/// `known` may be missing for the time being, as long as its section is the same.
pub(super) fn define(
    file: &ConfigFile,
    references: &References<'_>,
    known: &[Defined],
) -> Result<Vec<Defined>, Failure> {
    let mut all: Vec<Defined> = Vec::new();
    for section in &file.config().alarms.alarm {
        let spec = match define_one(file, section, references) {
            Ok(None) => continue,
            Ok(Some(spec)) => spec,
            Err(failure) => match known.iter().find(|one| one.section == *section) {
                Some(known) => known.spec.clone(),
                None => return Err(failure),
            },
        };
        if all.iter().any(|one| one.spec.id == spec.id) {
            let taken = AlarmError::Taken(spec.id);
            return Err(Defined::wrong(section, references, &taken.to_string()));
        }
        all.push(Defined { section: section.clone(), spec });
    }
    Ok(all)
}

fn define_one(
    file: &ConfigFile,
    section: &AlarmSection,
    references: &References<'_>,
) -> Result<Option<ConditionSpec>, Failure> {
    let Some(named) = Named::of(section, references)? else { return Ok(None) };
    let wrong = |why: String| Defined::wrong(section, references, &why);
    let mut spec = spec(section, &named, references.space()).map_err(wrong)?;
    spec.rules.audible = section.audible || section.sound.is_some();
    if let Some(path) = &section.sound {
        spec.sound = Some(sound(&file.resolve(path)).map_err(wrong)?);
    }
    Ok(Some(spec))
}

/// Replaces alarms by others. Equal ones are not touched. Returns whether there was a change, also before an error.
pub(super) fn change(
    references: &References<'_>,
    present: &mut Vec<Defined>,
    wanted: Vec<Defined>,
) -> (bool, Result<(), Failure>) {
    let conditions = Conditions::of(references.space());
    let mut has_changed = false;
    present.retain(|old| {
        let stays = wanted.iter().any(|new| new.spec.id == old.spec.id);
        if !stays {
            has_changed |= conditions.remove(&old.spec.id);
        }
        stays
    });
    for new in wanted {
        let known = present.iter_mut().find(|old| old.spec.id == new.spec.id);
        let changed = match &known {
            Some(old) if old.spec == new.spec => Ok(()),
            Some(_) => conditions.redefine(new.spec.clone()),
            None => conditions.add(new.spec.clone()),
        };
        if let Err(error) = changed {
            return (has_changed, Err(Defined::wrong(&new.section, references, &error.to_string())));
        }
        match known {
            Some(old) => {
                has_changed |= old.spec != new.spec;
                *old = new;
            }
            None => {
                has_changed = true;
                present.push(new);
            }
        }
    }
    (has_changed, Ok(()))
}

/// Adds the metrics of a configuration.
pub(super) fn add_metrics(file: &ConfigFile, server: &Server) -> Result<(), Failure> {
    let Some(minutes) = file.config().alarms.metrics_minutes else { return Ok(()) };
    let wrong = |problem: &dyn core::fmt::Display, hint: &str| {
        Failure::Usage(file.mistake_of("alarms.metrics_minutes", problem, hint).to_string())
    };
    if minutes == 0 {
        return Err(wrong(&"0 minutes are too few", "use a number of minutes from 1 on, or leave it out"));
    }
    server.alarm_metrics(minutes).map_err(|error| wrong(&error, ""))
}

/// Reads a sound file up to the maximum length.
fn sound(path: &Path) -> Result<ByteString, String> {
    let said = |error: std::io::Error| format!("cannot read the sound {}: {error}", path.display());
    let opened = taktwerk_config::file::open_regular(path).map_err(said)?;
    let mut bytes = Vec::new();
    opened.take(SOUND_LEN_MAX + 1).read_to_end(&mut bytes).map_err(said)?;
    Ok(bytes.into())
}

/// The nodes that an alarm refers to.
struct Named {
    source: NodeId,
    setpoint: Option<NodeId>,
    target: Option<NodeId>,
    instance: Option<NodeId>,
    own_type: Option<NodeId>,
}

impl Named {
    /// Finds the nodes; `None` if a check cannot know one of them.
    fn of(section: &AlarmSection, references: &References<'_>) -> Result<Option<Self>, Failure> {
        let node = |key: &str, text: &Spanned<String>| references.node(&format!("alarms.alarm.{key}"), text);
        let optional = |key: &str, text: &Option<Spanned<String>>| match text {
            None => Ok(Some(None)),
            Some(text) => node(key, text).map(|found| found.map(Some)),
        };
        let source = node("variable", &section.variable)?;
        let (setpoint, target) =
            (optional("setpoint", &section.setpoint)?, optional("target", &section.target)?);
        let (instance, own_type) =
            (optional("instance", &section.instance)?, optional("type", &section.own_type)?);
        let (Some(source), Some(setpoint), Some(target), Some(instance), Some(own_type)) =
            (source, setpoint, target, instance, own_type)
        else {
            return Ok(None);
        };
        Ok(Some(Self { source, setpoint, target, instance, own_type }))
    }
}

/// The kind of alarm, and the other variable that it refers to.
fn kind(
    section: &AlarmSection,
    named: &Named,
    space: &AddressSpace,
) -> Result<(Kind, Option<NodeId>), String> {
    let limits = Limits {
        high_high: section.high_high,
        high: section.high,
        low: section.low,
        low_low: section.low_low,
        deadband: section.deadband,
    };
    let has_limits = limits.all().next().is_some();
    let others = [section.normal.is_some(), section.target.is_some(), section.expires_before.is_some()];
    match (has_limits, others.into_iter().filter(|is_set| *is_set).count()) {
        (true, 0) | (false, 1) => {}
        (false, 0) => return Err("set limits such as high, or normal, target or expires_before".to_owned()),
        _ => return Err("set only one of limits, normal, target and expires_before".to_owned()),
    }
    if !has_limits && (section.setpoint.is_some() || section.rate_of_change) {
        return Err("setpoint and rate_of_change need limits such as high".to_owned());
    }
    if section.target.is_none() && (section.expected_time.is_some() || section.tolerance.is_some()) {
        return Err("expected_time and tolerance need a target".to_owned());
    }
    if let Some(normal) = &section.normal {
        return Ok((Kind::OffNormal { normal: normal_value(normal, &named.source, space)? }, None));
    }
    if let Some(target) = &named.target {
        let expected_time = span("expected_time", section.expected_time.unwrap_or_default())?;
        let tolerance = section.tolerance.unwrap_or_default();
        if !tolerance.is_finite() || tolerance < 0.0 {
            return Err("tolerance must be a number of at least 0".to_owned());
        }
        return Ok((Kind::Discrepancy { tolerance, expected_time }, Some(target.clone())));
    }
    if let Some(limit) = section.expires_before {
        return Ok((Kind::Expiration { limit: span("expires_before", limit)? }, None));
    }
    let (quantity, target) = match (&named.setpoint, section.rate_of_change) {
        (Some(_), true) => return Err("set either setpoint or rate_of_change".to_owned()),
        (Some(setpoint), false) => (Quantity::Deviation, Some(setpoint.clone())),
        (None, true) => (Quantity::RateOfChange, None),
        (None, false) => (Quantity::Level, None),
    };
    Ok((Kind::Limit { quantity, limits, is_exclusive: !section.non_exclusive }, target))
}

fn span(name: &str, millis: f64) -> Result<f64, String> {
    let longest = Duration::from_secs(366 * 86_400).as_millis() as f64;
    if millis.is_finite() && (0.0..=longest).contains(&millis) {
        Ok(millis)
    } else {
        Err(format!("{name} must be a number of milliseconds from 0 to one year"))
    }
}

fn spec(section: &AlarmSection, named: &Named, space: &AddressSpace) -> Result<ConditionSpec, String> {
    let (kind, target) = kind(section, named, space)?;
    let source = named.source.clone();
    let mut spec = match &named.instance {
        Some(id) => {
            if section.own_type.is_some() || section.name.is_some() {
                return Err("the instance defines type and name: remove them".to_owned());
            }
            ConditionSpec { is_bound: true, ..ConditionSpec::new(id.clone(), "", source.clone(), kind) }
        }
        None => added_spec(section, &source, kind),
    };
    if named.own_type.is_some() {
        spec.type_id.clone_from(&named.own_type);
    }
    (spec.input, spec.target) = (Some(source), target);
    own_fields(section, &mut spec, space)?;
    if let Some(severity) = section.severity {
        spec.severities.inner = severity.clamp(1, 1000);
        spec.severities.outer = spec.severities.outer.max(spec.severities.inner);
    }
    if let Some(severity) = section.outer_severity {
        spec.severities.outer = severity.clamp(1, 1000);
    }
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

/// An alarm with new nodes below its variable.
fn added_spec(section: &AlarmSection, source: &NodeId, kind: Kind) -> ConditionSpec {
    let name = section.name.as_deref().unwrap_or_else(|| kind.default_name());
    let base = match &source.identifier {
        Identifier::String(own) => own.as_str().to_owned(),
        Identifier::Numeric(own) => own.to_string(),
        _ => source.to_string(),
    };
    let id = NodeId::string(source.namespace_index.max(1), format!("{base}/{name}"));
    ConditionSpec::new(id, name, source.clone(), kind)
}

/// The values of fields that the alarm's own type adds.
fn own_fields(section: &AlarmSection, spec: &mut ConditionSpec, space: &AddressSpace) -> Result<(), String> {
    if section.fields.is_empty() {
        return Ok(());
    }
    let own_type = if spec.is_bound { space.type_definition(&spec.id) } else { spec.type_id.clone() };
    let own_type = own_type.ok_or("fields need a type that has them: set type or instance")?;
    // Check the type first: a type that is not an alarm type has none of the fields.
    let typed = ConditionSpec { type_id: Some(own_type.clone()), ..spec.clone() };
    space.check_condition_type(&typed).map_err(|error| error.to_string())?;
    let namespaces = space.namespaces();
    for (text, value) in &section.fields {
        let name = field_name(text, own_type.namespace_index, &namespaces)
            .ok_or_else(|| format!("fields: this server does not have the namespace of {text}"))?;
        let declared = space.event_field(&own_type, &name).and_then(|field| space.declared_shape(&field));
        let (shape, kind) = declared.ok_or_else(|| format!("{own_type} has no field {text} ({name})"))?;
        let typed = match value {
            FieldValue::Boolean(value) => value.to_string(),
            FieldValue::Integer(value) => value.to_string(),
            FieldValue::Number(value) => value.to_string(),
            FieldValue::Text(value) => value.clone(),
        };
        let is_scalar = shape.value_rank == -1;
        let value =
            crate::value::parse(&typed, kind, is_scalar).map_err(|why| format!("field {text}: {why}"))?;
        if !is_scalar && shape.value_rank >= 0 && !matches!(value, Variant::Array(_)) {
            return Err(format!("field {text} is an array: write \"[{typed}]\""));
        }
        spec.own.push((name, value));
    }
    Ok(())
}

/// Parses a path of names. Names without a namespace have that of the type. `nsu=` is a namespace URI (Part 6 §5.1.13).
fn field_name(text: &str, own: u16, namespaces: &[String]) -> Option<FieldName> {
    let mut path = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        // A URI may contain slashes.
        let uri = rest.strip_prefix("nsu=").map(|named| named.split_once(';')).map(|found| found.ok_or(()));
        let (index, named) = match uri {
            Some(Err(())) => return None,
            Some(Ok((uri, named))) => {
                let index = namespaces.iter().position(|known| known == uri)?;
                (Some(u16::try_from(index).ok()?), named)
            }
            None => (None, rest),
        };
        let (name, behind) = named.split_once('/').unwrap_or((named, ""));
        let is_numbered = name.split_once(':').is_some_and(|(number, _)| number.parse::<u16>().is_ok());
        path.push(match index {
            None if is_numbered => QualifiedName::parse(name),
            index => QualifiedName::new(index.unwrap_or(own), name),
        });
        rest = behind;
    }
    (!path.is_empty()).then(|| FieldName::new(&path))
}

/// Converts a normal value to the type of the variable.
fn normal_value(normal: &FieldValue, source: &NodeId, space: &AddressSpace) -> Result<Variant, String> {
    let kind = space.declared_shape(source).map(|(_, kind)| kind);
    let not = || {
        format!(
            "normal is not a value of the variable's type{}",
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
        (FieldValue::Boolean(value), Some(BuiltInType::Boolean)) => Ok((*value).into()),
        (FieldValue::Integer(value), _) => whole(*value).ok_or_else(not),
        (FieldValue::Number(value), Some(BuiltInType::Double)) => Ok((*value).into()),
        (FieldValue::Number(value), Some(BuiltInType::Float)) => Ok((*value as f32).into()),
        (FieldValue::Text(value), Some(BuiltInType::String)) => Ok(value.as_str().into()),
        _ => Err(not()),
    }
}
