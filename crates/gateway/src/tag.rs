//! A tag: a variable of the server whose values come from a source.

use crate::fields::{Fields, Mistake};
use crate::linear::Linear;
use crate::roles::TagRoles;
use crate::settings::SourceSettings;
use crate::tag_alarm::TagAlarm;
use crate::value::{Kind, TYPES, map_numbers};
use core::time::Duration;
use std::collections::BTreeSet;
use taktwerk::unit::Unit;
use taktwerk_schema::EUInformation;
use taktwerk_types::{BuiltInType, LocalizedText, NodeId, QualifiedName, StatusCode, Variant};

/// Linear scaling from the device's number to the tag's, with bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scaling {
    /// Factor and offset.
    pub linear: Linear,
    /// Numbers outside are set to the nearer bound.
    pub clamp: Option<(f64, f64)>,
}

/// StatusCode bits of a clamped value (Part 4 §7.38): InfoType DataValue and LimitBits.
const LOW_LIMITED: StatusCode = StatusCode(0x0500);
const HIGH_LIMITED: StatusCode = StatusCode(0x0600);

impl Scaling {
    /// The scaling that changes nothing.
    pub const IDENTITY: Self = Self { linear: Linear::IDENTITY, clamp: None };

    /// Whether the scaling changes nothing.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.linear.is_identity() && self.clamp.is_none()
    }

    /// Scales from device to tag. Returns the value and the status of a clamped value.
    #[must_use]
    pub fn apply(&self, value: &Variant, to: BuiltInType) -> Option<(Variant, StatusCode)> {
        let status = core::cell::Cell::new(StatusCode::GOOD);
        let scaled = map_numbers(value, to, |number| {
            let number = self.linear.apply(number);
            match self.clamp {
                Some((low, _)) if number < low => {
                    status.set(LOW_LIMITED);
                    low
                }
                Some((_, high)) if number > high => {
                    status.set(HIGH_LIMITED);
                    high
                }
                _ => number,
            }
        })?;
        Some((scaled, status.get()))
    }

    /// Scales from tag to device. Values outside the bounds are rejected.
    ///
    /// # Errors
    /// Bad_OutOfRange.
    pub fn revert(&self, value: &Variant) -> Result<Variant, StatusCode> {
        if self.is_identity() {
            return Ok(value.clone());
        }
        let is_outside = core::cell::Cell::new(false);
        let raw = map_numbers(value, BuiltInType::Double, |number| {
            let fits = self.clamp.is_none_or(|(low, high)| (low..=high).contains(&number));
            is_outside.set(is_outside.get() || !fits);
            self.linear.revert(number)
        });
        match raw {
            Some(raw) if !is_outside.get() => Ok(raw),
            Some(_) => Err(StatusCode::BAD_OUT_OF_RANGE),
            None => Err(StatusCode::BAD_TYPE_MISMATCH),
        }
    }
}

/// What clients may do with a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read.
    Read,
    /// Read and write.
    ReadWrite,
}

/// The configuration of a tag, without the settings specific to its source.
#[derive(Debug, Clone)]
pub struct Tag {
    /// The name of its source.
    pub source: String,
    /// Its name.
    pub name: String,
    /// The folders above it.
    pub path: Vec<String>,
    /// The description shown to clients.
    pub description: Option<String>,
    /// The data type, if set.
    pub kind: Option<BuiltInType>,
    /// Scaling and clamping.
    pub scaling: Scaling,
    /// The engineering unit.
    pub units: Option<EUInformation>,
    /// The range of usual values.
    pub range: Option<(f64, f64)>,
    /// Names of values.
    pub states: Vec<(i64, String)>,
    /// Numbers that differ by less than this from the last stored one are not stored.
    pub deadband: f64,
    /// The access of clients.
    pub access: Access,
    /// Whether its values are recorded.
    pub historize: bool,
    /// Expected interval between values. Default: the source's interval.
    pub expect_every: Option<Duration>,
    /// After this time without a value, the last one becomes Uncertain_LastUsableValue. Default: the source's setting, or two
    /// expected intervals.
    pub stale_after: Option<Duration>,
    /// After this time without a value, the tag becomes Bad_NoCommunication. Default: the source's setting.
    pub lost_after: Option<Duration>,
    /// The roles that may use it.
    pub roles: TagRoles,
    /// The alarm on its value.
    pub alarm: Option<TagAlarm>,
    /// The types of a mirrored variable on its own server.
    pub model: Model,
}

/// The types of a mirrored node, with the ids that these types have on this server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Model {
    /// The type, unless it is one of namespace 0.
    pub type_definition: Option<NodeId>,
    /// The DataType of a variable, unless it is one of namespace 0.
    pub data_type: Option<NodeId>,
    /// The BrowseName, unless it is in the gateway's namespace.
    pub browse_name: Option<QualifiedName>,
}

/// Longest name of a tag or folder, in bytes.
const NAME_LEN_MAX: usize = 200;
/// Most folders of a path.
const DEPTH_MAX: usize = 32;

impl Tag {
    /// Takes the settings common to all tags.
    ///
    /// # Errors
    /// The first mistake.
    pub fn take(fields: &mut Fields) -> Result<Self, Mistake> {
        let (_, source) = fields.required("source", "\"plc\"")?;
        let (line, name) = fields.required("name", "\"Temperature\"")?;
        check_name(fields, line, "name", &name)?;
        let path = match fields.text_at("path")? {
            None => vec![source.clone()],
            Some((line, path)) => {
                let folders: Vec<String> = path
                    .split('/')
                    .map(str::trim)
                    .filter(|folder| !folder.is_empty())
                    .map(str::to_owned)
                    .collect();
                if folders.len() > DEPTH_MAX {
                    return Err(fields.mistake_in(
                        line,
                        "path",
                        "the path is too deep",
                        "use at most 32 folders",
                    ));
                }
                for folder in &folders {
                    check_name(fields, line, "path", folder)?;
                }
                folders
            }
        };
        let factor = fields.number_at("scale")?;
        if let Some((line, factor)) = factor
            && factor == 0.0
        {
            return Err(fields.mistake_in(
                line,
                "scale",
                "a scale of 0 makes every value the same",
                "leave it out",
            ));
        }
        let deadband = fields.number_at("deadband")?;
        if let Some((line, deadband)) = deadband
            && deadband < 0.0
        {
            return Err(fields.mistake_in(line, "deadband", "is negative", "write a number from 0 on"));
        }
        let units = fields.text("units")?.map(|text| units(&text));
        Ok(Self {
            source,
            name,
            path,
            description: fields.text("description")?,
            kind: fields.word("type", &TYPES)?,
            scaling: Scaling {
                linear: Linear::new(
                    factor.map_or(1.0, |(_, factor)| factor),
                    fields.number("offset")?.unwrap_or(0.0),
                ),
                clamp: fields.pair("clamp")?,
            },
            units,
            range: fields.pair("range")?,
            states: take_states(fields)?,
            deadband: deadband.map_or(0.0, |(_, deadband)| deadband),
            access: fields
                .word("access", &[("read", Access::Read), ("read-write", Access::ReadWrite)])?
                .unwrap_or(Access::Read),
            historize: fields.flag("historize")?.unwrap_or(false),
            expect_every: fields.span("expect_every")?,
            stale_after: fields.span("stale_after")?,
            lost_after: fields.span("lost_after")?,
            roles: TagRoles::take(fields)?,
            alarm: TagAlarm::take(fields)?,
            model: Model::default(),
        })
    }

    /// Its path and name: `Line 1/Oven/Temperature`.
    #[must_use]
    pub fn full_name(&self) -> String {
        let mut name = self.path.join("/");
        if !name.is_empty() {
            name.push('/');
        }
        name.push_str(&self.name);
        name
    }

    /// When its value becomes uncertain. A setting of the tag precedes that of its source. `None`: it has no interval, and
    /// becomes uncertain when the connection is lost.
    #[must_use]
    pub fn stale_after_in(&self, source: &SourceSettings) -> Option<Duration> {
        let expected = self.expect_every.or(source.interval).map(|every| every * 2);
        self.stale_after.or(source.stale_after).or(expected)
    }

    /// The type of the variable, given the type of the source's values.
    #[must_use]
    pub fn kind_for(&self, native: Kind) -> Kind {
        let element = match self.kind {
            Some(kind) => kind,
            None if self.scaling.is_identity() || !native.is_number() => native.element,
            None => BuiltInType::Double,
        };
        Kind { element, is_array: native.is_array }
    }

    /// Why a variable of this type cannot show the names of its values, and how to correct it.
    #[must_use]
    pub fn states_problem(&self, kind: Kind) -> Option<(String, &'static str)> {
        let element = kind.element;
        let values = || self.states.iter().map(|(value, _)| *value);
        let mut seen = BTreeSet::new();
        let twice = values().find(|value| !seen.insert(*value));
        let problem = |said: String, hint| Some((format!("states are {said}"), hint));
        if self.states.is_empty() {
            None
        } else if !(1..=9).contains(&element.number()) {
            problem(format!("for Booleans and integers, and this is a {element}"), "remove them, or set type")
        } else if kind.is_array {
            problem("for single values, and this is an array".to_owned(), "remove them")
        } else if self.units.is_some() || self.range.is_some() {
            problem("for values without units and range".to_owned(), "remove either")
        } else if let Some(value) = twice {
            problem(format!("one for each value, and {value} has two"), "remove one of them")
        } else if element == BuiltInType::Boolean {
            let is_right = values().all(|value| matches!(value, 0 | 1)) && values().count() == 2;
            let hint = "write states = [\"0 = Off\", \"1 = On\"]";
            if is_right { None } else { problem("both or none for a Boolean: 0 and 1".to_owned(), hint) }
        } else {
            let outside = values().find(|value| kind.coerce((*value).into()).is_none());
            outside.and_then(|value| {
                problem(format!("values of the tag, and {value} is no {element}"), "remove it, or set type")
            })
        }
    }
}

/// Names of values: `["0 = Off", "1 = On"]`.
fn take_states(fields: &mut Fields) -> Result<Vec<(i64, String)>, Mistake> {
    let entries = fields.texts("states")?.unwrap_or_default();
    let state = |entry: &String| {
        let (value, name) = entry.split_once('=')?;
        Some((value.trim().parse().ok()?, name.trim().to_owned()))
    };
    let states = entries.iter().map(|entry| state(entry).ok_or(entry)).collect::<Result<Vec<_>, _>>();
    states.map_err(|entry| {
        fields.mistake(
            format!("states: {entry:?} is no value with its name"),
            "write states = [\"0 = Off\", \"1 = On\"]",
        )
    })
}

fn check_name(fields: &Fields, line: usize, key: &str, name: &str) -> Result<(), Mistake> {
    if name.len() > NAME_LEN_MAX || name.chars().any(char::is_control) {
        let hint = "names have at most 200 bytes and no control characters";
        return Err(fields.mistake_in(line, key, format!("{name:?} is no name"), hint));
    }
    Ok(())
}

/// A unit by symbol or UNECE code. Other units are shown as written.
#[must_use]
pub fn units(text: &str) -> EUInformation {
    match Unit::ALL.iter().find(|unit| unit.symbol() == text || unit.code() == text) {
        Some(unit) => unit.information(),
        None => EUInformation {
            // Part 8 §5.6.4.3: -1 means that the unit is not in the namespace.
            unit_id: -1,
            display_name: LocalizedText::new("en", text),
            description: LocalizedText::new("en", text),
            ..EUInformation::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Sections;
    use std::path::Path;

    fn tag(text: &str) -> Result<Tag, Mistake> {
        let mut fields =
            Sections::parse(Path::new("g.toml"), &format!("[[tag]]\n{text}")).unwrap().tags.remove(0);
        Tag::take(&mut fields).and_then(|tag| fields.finish().map(|()| tag))
    }

    #[test]
    fn a_tag_has_defaults_and_rejects_invalid_settings() {
        let plain = tag("source = \"plc\"\nname = \"T\"\n").unwrap();
        assert_eq!(plain.path, ["plc"]);
        assert!(plain.scaling.is_identity() && plain.access == Access::Read && !plain.historize);
        assert_eq!(plain.kind_for(Kind::scalar(BuiltInType::UInt16)).element, BuiltInType::UInt16);
        let scaled =
            tag("source = \"plc\"\nname = \"T\"\nscale = 0.1\npath = \"Line 1/Oven\"\nunits = \"°C\"\n")
                .unwrap();
        assert_eq!(scaled.path, ["Line 1", "Oven"]);
        assert_eq!(scaled.units.as_ref().map(|units| units.unit_id), Some(Unit::CELSIUS.id()));
        assert_eq!(scaled.kind_for(Kind::scalar(BuiltInType::UInt16)).element, BuiltInType::Double);
        for (text, said) in [
            ("name = \"T\"\n", "g.toml:1: source is missing"),
            ("source = \"plc\"\nname = \"T\"\nscale = 0\n", "g.toml:4: scale: a scale of 0"),
            ("source = \"plc\"\nname = \"T\"\ntype = \"Flaot\"\n", "did you mean \"Float\"?"),
            ("source = \"plc\"\nname = \"T\"\nacces = \"read\"\n", "did you mean `access`?"),
            (
                "source = \"plc\"\nname = \"T\"\nstates = [\"0: Off\"]\n",
                "g.toml:1: states: \"0: Off\" is no value with its name",
            ),
            ("source = \"plc\"\nname = \"T\"\nclamp = [1, 1]\n", "g.toml:4: clamp: this is no range"),
        ] {
            let error = tag(text).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn numbers_are_scaled_clamped_and_scaled_back() {
        let scaling = Scaling { linear: Linear::new(0.1, -40.0), clamp: Some((-20.0, 60.0)) };
        let apply = |raw: u16| scaling.apply(&raw.into(), BuiltInType::Double).unwrap();
        assert_eq!(apply(500), (10.0.into(), StatusCode::GOOD));
        assert_eq!(apply(629), (22.9.into(), StatusCode::GOOD));
        assert_eq!(apply(0), ((-20.0).into(), LOW_LIMITED));
        assert_eq!(apply(2000), (60.0.into(), HIGH_LIMITED));
        assert!(!LOW_LIMITED.is_bad() && !LOW_LIMITED.is_uncertain());
        assert_eq!(scaling.revert(&10.0.into()), Ok(500.0.into()));
        assert_eq!(scaling.revert(&61.0.into()), Err(StatusCode::BAD_OUT_OF_RANGE));
        assert_eq!(scaling.revert(&"x".into()), Err(StatusCode::BAD_TYPE_MISMATCH));
    }
}
