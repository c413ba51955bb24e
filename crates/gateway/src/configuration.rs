//! The gateway's configuration as read from its file.

mod circles;
pub mod references;

use crate::adapter::calculation::Calculation;
#[cfg(feature = "can")]
use crate::adapter::can::Can;
use crate::adapter::file::{Log, WholeFile};
use crate::adapter::http::Http;
use crate::adapter::line::Line;
use crate::adapter::modbus::Modbus;
use crate::adapter::mqtt::Mqtt;
use crate::adapter::opcua::OpcUa;
use crate::adapter::program::Program;
use crate::adapter::replay::Replay;
use crate::adapter::simulation::Simulation;
use crate::adapter::sparkplug::Sparkplug;
use crate::destination::Sink;
use crate::destination::file::Files;
use crate::destination::influx::InfluxSink;
#[cfg(feature = "kafka")]
use crate::destination::kafka::KafkaSink;
use crate::destination::mqtt::MqttSink;
#[cfg(feature = "nats")]
use crate::destination::nats::NatsSink;
use crate::destination::opcua::OpcUaSink;
#[cfg(feature = "parquet")]
use crate::destination::parquet::ParquetFiles;
#[cfg(feature = "postgres")]
use crate::destination::postgres::PostgresSink;
use crate::destination::pubsub::PubSubSink;
use crate::destination::settings::DestinationSettings;
use crate::destination::sparkplug::SparkplugSink;
use crate::fields::{Fields, Mistake, Sections, Setting};
use crate::lease::LeaseConfig;
use crate::settings::SourceSettings;
use crate::source::{Adapter, Placement};
use crate::table;
use crate::tag::Tag;
use crate::template;
use core::hash::Hasher;
use core::time::Duration;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

/// The default namespace of tags.
pub const NAMESPACE_DEFAULT: &str = "urn:taktwerk:gateway";
/// Most threads for all sources together.
const THREADS_MAX: u64 = 64;

/// The configuration of a gateway.
pub struct GatewayConfig {
    /// The namespace of the tags.
    pub namespace: String,
    /// Threads for all sources together.
    pub threads: usize,
    /// Its sources.
    pub sources: Vec<SourceConfig>,
    /// Its destinations.
    pub destinations: Vec<DestinationConfig>,
    /// The lease service for sources that several gateways share.
    pub lease: Option<LeaseConfig>,
    /// A hash of the lease settings, to detect changes.
    pub lease_fingerprint: u64,
}

/// The configuration of a destination.
pub struct DestinationConfig {
    /// The settings common to all destinations.
    pub settings: DestinationSettings,
    /// The destination itself.
    pub sink: Box<dyn Sink>,
    /// The line of its section.
    pub line: usize,
    /// A hash of the settings, independent of their lines, to detect changes.
    pub fingerprint: u64,
}

/// The configuration of a source.
pub struct SourceConfig {
    /// The settings common to all sources.
    pub settings: SourceSettings,
    /// The source itself, with its tags.
    pub adapter: Box<dyn Adapter>,
    /// The tags in file order.
    pub tags: Vec<TagConfig>,
    /// How many of them are variables.
    pub variables: usize,
    /// The line of its section.
    pub line: usize,
    /// A hash of the settings and tags, independent of their lines, to detect changes.
    pub fingerprint: u64,
}

/// The configuration of a tag.
#[derive(Debug, Clone)]
pub struct TagConfig {
    /// What every tag has.
    pub tag: Tag,
    /// How the tag is represented in the address space.
    pub placement: Placement,
    /// The file of the tag: the configuration, or a table.
    pub path: PathBuf,
    /// Its line there.
    pub line: usize,
}

impl core::fmt::Debug for GatewayConfig {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("GatewayConfig").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl core::fmt::Debug for DestinationConfig {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("DestinationConfig").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl core::fmt::Debug for SourceConfig {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SourceConfig").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Creates a source from its settings.
type Take = fn(&mut Fields, &SourceSettings) -> Result<Box<dyn Adapter>, Mistake>;

/// A kind of source: its name in files, its default interval, and its constructor.
#[derive(Clone, Copy)]
struct SourceKind {
    name: &'static str,
    interval: Option<Duration>,
    take: Take,
}

macro_rules! kind {
    ($name:literal, $interval:expr, $type:ident) => {
        SourceKind {
            name: $name,
            interval: $interval,
            take: |fields, settings| Ok(Box::new($type::take(fields, settings)?)),
        }
    };
}

const SECOND: Option<Duration> = Some(Duration::from_secs(1));

const KINDS: &[SourceKind] = &[
    kind!("calculation", SECOND, Calculation),
    #[cfg(feature = "can")]
    kind!("can", None, Can),
    kind!("file", SECOND, WholeFile),
    kind!("http", SECOND, Http),
    kind!("line", None, Line),
    kind!("log", None, Log),
    kind!("modbus", SECOND, Modbus),
    kind!("mqtt", None, Mqtt),
    kind!("opcua", None, OpcUa),
    kind!("program", SECOND, Program),
    kind!("replay", SECOND, Replay),
    kind!("simulation", SECOND, Simulation),
    kind!("sparkplug", None, Sparkplug),
];

/// Creates a destination from its settings.
type TakeSink = fn(&mut Fields, &DestinationSettings) -> Result<Box<dyn Sink>, Mistake>;

macro_rules! sink {
    ($name:literal, $type:ident) => {
        ($name, (|fields, settings| Ok(Box::new($type::take(fields, settings)?))) as TakeSink)
    };
}

const SINKS: &[(&str, TakeSink)] = &[
    sink!("file", Files),
    sink!("mqtt", MqttSink),
    sink!("influx", InfluxSink),
    sink!("opcua", OpcUaSink),
    sink!("pubsub", PubSubSink),
    sink!("sparkplug", SparkplugSink),
    #[cfg(feature = "kafka")]
    sink!("kafka", KafkaSink),
    #[cfg(feature = "nats")]
    sink!("nats", NatsSink),
    #[cfg(feature = "parquet")]
    sink!("parquet", ParquetFiles),
    #[cfg(feature = "postgres")]
    sink!("postgres", PostgresSink),
];

impl GatewayConfig {
    /// Reads the sections of a configuration file that belong to the gateway; `None` if there are none.
    ///
    /// # Errors
    /// The first mistake, with its line.
    pub fn parse(path: &Path, text: &str) -> Result<Option<Self>, Mistake> {
        let (config, mistakes) = Self::examine(path, text);
        match mistakes.into_iter().next() {
            Some(mistake) => Err(mistake),
            None => Ok(config),
        }
    }

    /// Reads the sections like [`Self::parse`] and continues after mistakes. Returns the valid part, and all mistakes.
    #[must_use]
    pub fn examine(path: &Path, text: &str) -> (Option<Self>, Vec<Mistake>) {
        let mut sections = match Sections::parse(path, text) {
            Ok(sections) => sections,
            Err(mistake) => return (None, vec![mistake]),
        };
        let mut mistakes = template::expand(&mut sections);
        let is_empty = sections.sources.is_empty() && sections.tags.is_empty();
        if sections.gateway.is_none() && is_empty && sections.destinations.is_empty() {
            return (None, mistakes);
        }
        let mut config = Self {
            namespace: NAMESPACE_DEFAULT.to_owned(),
            threads: 1,
            sources: Vec::new(),
            destinations: Vec::new(),
            lease: None,
            lease_fingerprint: 0,
        };
        if let Some(mut fields) = sections.gateway {
            mistakes.extend(fields.examine(&[], |fields| config.take_gateway(fields)).mistakes);
        }
        // Tags of a source whose section is broken must not be reported as having no source.
        let mut broken = BTreeSet::new();
        let mut lines: Vec<(usize, Fields)> = Vec::new();
        for mut fields in sections.sources {
            let name = match fields.get("name") {
                Some(Setting::Text(name)) => name.clone(),
                _ => String::new(),
            };
            let examined = fields.examine(&["type"], take_source);
            mistakes.extend(examined.mistakes);
            match examined.value.filter(|_| !examined.wrong.contains("name")) {
                Some(source) if config.sources.iter().any(|other| other.settings.name == name) => {
                    let problem = format!("there are two sources {:?}", source.settings.name);
                    mistakes.push(fields.mistake(problem, "give each its own name"));
                }
                Some(source) => {
                    if let Some(other) = config.sources.iter().find(|other| shares_device(other, &source)) {
                        let problem = format!("source {:?} uses the same device", other.settings.name);
                        let hint = "give the tags of both to one source: only one can open a device";
                        mistakes.push(fields.mistake(problem, hint));
                    }
                    lines.push((config.sources.len(), fields));
                    config.sources.push(source);
                }
                None => {
                    broken.insert(name);
                }
            }
        }
        let mut tags = Vec::new();
        for (index, fields) in &mut lines {
            let name =
                config.sources.get(*index).map(|source| source.settings.name.as_str()).unwrap_or_default();
            match tags_of_table(path, name, fields) {
                Ok(read) => tags.extend(read),
                Err(mistake) => mistakes.push(mistake),
            }
        }
        tags.extend(sections.tags);
        let mut names = Names::default();
        for mut fields in tags {
            let mut hasher = DefaultHasher::new();
            fields.fingerprint(&mut hasher);
            let examined = fields.examine(&["source"], Tag::take);
            let is_right = examined.mistakes.is_empty();
            mistakes.extend(examined.mistakes);
            let Some(tag) = examined.value.filter(|tag| !broken.contains(&tag.source)) else { continue };
            if let Some((problem, hint)) = tag.roles.problem(&sections.roles) {
                mistakes.push(fields.mistake(problem, hint));
            }
            if let Some(source) = config.sources.iter_mut().find(|it| it.settings.name == tag.source) {
                hasher.write_u64(source.fingerprint);
                source.fingerprint = hasher.finish();
            }
            add_tag(&mut config.sources, tag, &mut fields, is_right.then_some(&mut names), &mut mistakes);
        }
        for (_, fields) in lines {
            mistakes.extend(fields.unknown());
        }
        // A mistake in the first line of a table is found in every row.
        let mut seen = HashSet::new();
        mistakes.retain(|mistake| seen.insert(mistake.to_string()));
        if let Some(mut fields) = sections.lease {
            let mut hasher = DefaultHasher::new();
            fields.fingerprint(&mut hasher);
            config.lease_fingerprint = hasher.finish();
            let examined = fields.examine(&[], LeaseConfig::take);
            mistakes.extend(examined.mistakes);
            config.lease = examined.value;
        }
        for mut fields in sections.destinations {
            let examined = fields.examine(&["type"], take_destination);
            match examined.value.filter(|_| examined.mistakes.is_empty()) {
                Some(destination) => mistakes.extend(config.add_destination(&fields, destination).err()),
                None => mistakes.extend(examined.mistakes),
            }
        }
        // A partial configuration would report further mistakes about its missing parts.
        if mistakes.is_empty() {
            mistakes = references::mistakes(path, &config);
            mistakes.extend(circles::mistakes(&config));
        }
        (Some(config), mistakes)
    }

    /// The same without destinations, so that their queues are not opened.
    #[must_use]
    pub fn without_destinations(mut self) -> Self {
        self.destinations = Vec::new();
        self
    }

    fn take_gateway(&mut self, fields: &mut Fields) -> Result<(), Mistake> {
        if let Some(namespace) = fields.text("namespace")? {
            self.namespace = namespace;
        }
        self.threads = fields.integer("threads", 1, THREADS_MAX)?.unwrap_or(1) as usize;
        fields.finish()
    }

    fn add_destination(&mut self, fields: &Fields, destination: DestinationConfig) -> Result<(), Mistake> {
        for other in &self.destinations {
            if other.settings.name == destination.settings.name {
                let problem = format!("there are two destinations {:?}", destination.settings.name);
                return Err(fields.mistake(problem, "give each its own name"));
            }
            if other.settings.queue == destination.settings.queue {
                let problem = format!("{:?} has the same queue", other.settings.name);
                return Err(fields.mistake(problem, "give each its own file"));
            }
        }
        self.destinations.push(destination);
        Ok(())
    }

    /// An empty configuration.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            namespace: NAMESPACE_DEFAULT.to_owned(),
            threads: 1,
            sources: Vec::new(),
            destinations: Vec::new(),
            lease: None,
            lease_fingerprint: 0,
        }
    }

    /// How many tags there are.
    #[must_use]
    pub fn tag_count(&self) -> usize {
        self.sources.iter().map(|source| source.tags.len()).sum()
    }

    /// Whether a tag is to be recorded.
    #[must_use]
    pub fn historizes(&self) -> bool {
        self.sources.iter().flat_map(|source| &source.tags).any(|it| it.tag.historize)
    }
}

/// The value of the setting `type` in this build. `optional` lists the types that need a build feature.
fn meaning_of_build<T: Copy>(
    fields: &Fields,
    line: usize,
    text: &str,
    words: &[(&str, T)],
    optional: &[&str],
) -> Result<T, Mistake> {
    if optional.contains(&text) && words.iter().all(|(word, _)| *word != text) {
        let hint = format!("install one with it: cargo install --path crates/cli --features {text}");
        return Err(fields.mistake_in(line, "type", format!("this program is built without {text:?}"), hint));
    }
    fields.meaning(line, "type", text, words)
}

fn take_source(fields: &mut Fields) -> Result<SourceConfig, Mistake> {
    let mut hasher = DefaultHasher::new();
    fields.fingerprint(&mut hasher);
    let (line, name) = fields.required("name", "\"plc\"")?;
    if name.len() > 100 || name.chars().any(|char| char.is_control() || char == '/') {
        let hint = "names have at most 100 bytes, no / and no control characters";
        return Err(fields.mistake_in(line, "name", format!("{name:?} is no name"), hint));
    }
    let (line, kind) = fields.required("type", "\"modbus\"")?;
    let kinds: Vec<(&str, SourceKind)> = KINDS.iter().map(|kind| (kind.name, *kind)).collect();
    let kind = meaning_of_build(fields, line, &kind, &kinds, &["can"])?;
    // A calculation asks no device, so it needs no lease.
    let is_own = kind.name == "calculation" && !fields.has("lease");
    let mut settings = SourceSettings::take(fields, name, kind.interval)?;
    settings.is_leased &= !is_own;
    let adapter = (kind.take)(fields, &settings)?;
    Ok(SourceConfig {
        settings,
        adapter,
        tags: Vec::new(),
        variables: 0,
        line: fields.line(),
        fingerprint: hasher.finish(),
    })
}

/// The tags of the table file that a source names.
fn tags_of_table(path: &Path, source: &str, fields: &mut Fields) -> Result<Vec<Fields>, Mistake> {
    let Some((line, table)) = fields.text_at("tags")? else { return Ok(Vec::new()) };
    let table = path.parent().unwrap_or(Path::new("")).join(table);
    table::read(&table, source).map_err(|mistake| match mistake.line {
        // The table file cannot be read: report the line that names it.
        0 => fields.mistake_in(line, "tags", mistake.to_string(), "paths start from the folder of this file"),
        _ => mistake,
    })
}

fn take_destination(fields: &mut Fields) -> Result<DestinationConfig, Mistake> {
    let mut hasher = DefaultHasher::new();
    fields.fingerprint(&mut hasher);
    let (line, name) = fields.required("name", "\"archive\"")?;
    let is_plain = |char: char| char.is_alphanumeric() || matches!(char, '-' | '_' | '.' | ' ');
    if name.len() > 100 || !name.chars().all(is_plain) || name.starts_with('.') {
        let hint = "names have letters, digits, - _ . and spaces, and at most 100 bytes";
        return Err(fields.mistake_in(line, "name", format!("{name:?} is no name"), hint));
    }
    let (line, kind) = fields.required("type", "\"file\"")?;
    let take = meaning_of_build(fields, line, &kind, SINKS, &["kafka", "nats", "parquet", "postgres"])?;
    let settings = DestinationSettings::take(fields, name)?;
    let sink = take(fields, &settings)?;
    fields.finish()?;
    Ok(DestinationConfig { settings, sink, line: fields.line(), fingerprint: hasher.finish() })
}

/// Whether both sources need the same device, perhaps by two paths: adapters often have a second one below
/// `/dev/serial/by-id`.
fn shares_device(one: &SourceConfig, two: &SourceConfig) -> bool {
    let path = |device: &str| std::fs::canonicalize(device).unwrap_or_else(|_| device.into());
    one.adapter.device().zip(two.adapter.device()).is_some_and(|(one, two)| path(one) == path(two))
}

/// The names of the future nodes, to detect duplicates.
#[derive(Debug, Default)]
struct Names {
    variables: BTreeMap<Vec<String>, usize>,
    folders: BTreeSet<Vec<String>>,
}

impl Names {
    fn add(&mut self, tag: &Tag, fields: &Fields) -> Result<(), Mistake> {
        let clash = |path: &[String]| {
            Err(fields
                .mistake(format!("{} is a tag and a folder", path.join("/")), "give the tag another name"))
        };
        for depth in 1..=tag.path.len() {
            let folder: Vec<String> = tag.path.iter().take(depth).cloned().collect();
            if self.variables.contains_key(&folder) {
                return clash(&folder);
            }
            self.folders.insert(folder);
        }
        let mut path = tag.path.clone();
        path.push(tag.name.clone());
        if self.folders.contains(&path) {
            return clash(&path);
        }
        if let Some(line) = self.variables.insert(path.clone(), fields.line()) {
            let problem = format!("there is another tag {} in line {line}", path.join("/"));
            return Err(fields.mistake(problem, "give it another name or path"));
        }
        Ok(())
    }
}

/// Adds a tag to its source. `names` is `None` if the tag's own name is uncertain.
fn add_tag(
    sources: &mut [SourceConfig],
    mut tag: Tag,
    fields: &mut Fields,
    names: Option<&mut Names>,
    mistakes: &mut Vec<Mistake>,
) {
    let Some(source) = sources.iter_mut().find(|source| source.settings.name == tag.source) else {
        let known = sources.iter().map(|source| &*source.settings.name);
        let hint = match taktwerk_config::nearest(&tag.source, known) {
            Some(near) => format!("did you mean {near:?}?"),
            None => "add a [[source]] with this name".to_owned(),
        };
        mistakes.push(fields.mistake(format!("there is no source {:?}", tag.source), hint));
        return;
    };
    let position = source.variables;
    let examined = fields.examine(&[], |fields| source.adapter.add_tag(&tag, fields, position));
    let is_right = examined.mistakes.is_empty();
    mistakes.extend(examined.mistakes);
    let Some(placement) = examined.value else { return };
    mistakes.extend(fields.unknown());
    // The tag counts from here on, even if a later setting is wrong.
    let (path, line) = (fields.path().to_owned(), fields.line());
    if let Placement::Variable(kind) = placement {
        source.variables += 1;
        mistakes.extend(names.and_then(|names| names.add(&tag, fields).err()));
        let native = tag.kind_for(kind);
        if is_right
            && !native.is_number()
            && (tag.deadband > 0.0 || tag.units.is_some() || tag.range.is_some())
        {
            let problem =
                format!("deadband, units and range are for numbers, and this is a {}", native.element);
            mistakes.push(fields.mistake(problem, "remove them"));
        }
        let alarm = tag.alarm.as_ref().and_then(|alarm| alarm.problem(native));
        for (problem, hint) in tag.states_problem(native).into_iter().chain(alarm).filter(|_| is_right) {
            mistakes.push(fields.mistake(problem, hint));
        }
        source.adapter.complete(position, &mut tag);
    }
    source.tags.push(TagConfig { tag, placement, path, line });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(text: &str) -> String {
        GatewayConfig::parse(Path::new("g.toml"), text).unwrap_err().to_string()
    }

    const SOURCE: &str = "[[source]]\nname = \"plc\"\ntype = \"modbus\"\naddress = \"localhost\"\n";

    #[test]
    fn a_file_without_sources_has_no_gateway() {
        assert!(GatewayConfig::parse(Path::new("g"), "[server]\nthreads = 1\n").unwrap().is_none());
        let text = format!(
            "[server]\nx = 1\n{SOURCE}[[tag]]\nsource = \"plc\"\nname = \"a\"\naddress = \"coil:1\"\n"
        );
        let config = GatewayConfig::parse(Path::new("g"), &text).unwrap().unwrap();
        assert_eq!((config.sources.len(), config.tag_count(), config.threads), (1, 1, 1));
    }

    #[test]
    fn all_mistakes_of_a_file_are_found() {
        let text = "[gateway]\nthreads = 0\nnamespac = \"x\"\n\
                    [[source]]\nname = \"plc\"\ntype = \"modbus\"\naddress = \"localhost\"\ninterval = \"soon\"\n\
                    deadline = 0\nretrry = 1\n\
                    [[tag]]\nsource = \"plc\"\nname = \"a\\u0007b\"\naddress = \"holdin:1\"\nscale = 0\nformta = 1\n\
                    [[tag]]\nsource = \"plc\"\nrange = [2, 1]\nunitt = 2\n\
                    [[source]]\nname = \"up\"\ntype = \"opcua\"\nurl = \"http://x\"\nmirror = \"nothing\"\n\
                    [[source]]\nname = \"what\"\ntype = \"mdobus\"\nx = 1\n\
                    [[tag]]\nsource = \"what\"\nname = \"n\"\n\
                    [[destination]]\nname = \"f\"\ntype = \"file\"\nmax_age = true\nfolde = \"x\"\n\
                    [[template]]\nname = \"t\"\nparameters = [\"p\"]\nno = 1\n[[template.tag]]\nname = \"v\"\n\
                    [[instance]]\ntemplate = \"t\"\nsource = \"plc\"\npath = \"i\"\np = []\nq = 1\n";
        let (_, mut mistakes) = GatewayConfig::examine(Path::new("g"), text);
        mistakes.sort_by_key(|mistake| mistake.line);
        let found: Vec<String> =
            mistakes.iter().map(|mistake| format!("{} {}", mistake.line, mistake.key)).collect();
        let expected = [
            "2 threads",
            "3 namespac",
            "8 interval",
            "9 deadline",
            "10 retrry",
            "13 name",
            "14 address",
            "15 scale",
            "16 formta",
            "17 ",
            "17 ",
            "19 range",
            "20 unitt",
            "21 mirror",
            "24 url",
            "28 type",
            "36 max_age",
            "37 folde",
            "41 no",
            "48 p",
            "49 q",
        ];
        assert_eq!(found, expected, "{mistakes:#?}");
        let missing: Vec<&str> =
            mistakes.iter().filter(|it| it.key.is_empty()).map(|it| it.problem.as_str()).collect();
        assert_eq!(missing, ["name is missing", "address is missing"]);
    }

    #[test]
    fn mistakes_name_file_line_key_and_correction() {
        let tag = |more: &str| {
            format!("{SOURCE}[[tag]]\nsource = \"plc\"\nname = \"a\"\naddress = \"holding:1\"\n{more}")
        };
        let serial = |device: &str, more: &str| {
            format!("[[source]]\nname = \"plc\"\ntype = \"modbus\"\ndevice = \"{device}\"\n{more}")
        };
        for (text, said) in [
            (
                SOURCE.replace("modbus", "modbsu"),
                "g.toml:3: type: there is no \"modbsu\"; did you mean \"modbus\"?",
            ),
            (
                SOURCE.replace("address", "adress"),
                "g.toml:4: adress: there is no such setting here; did you mean `address`?",
            ),
            (SOURCE.replace("address", "host_name"), "g.toml:1: a Modbus source needs an address"),
            (
                tag("deadband = \"0,5\"\n"),
                "g.toml:9: deadband: this is the text \"0,5\"; write a number with a decimal point: 0.5",
            ),
            (
                format!("{SOURCE}intervall = \"1 s\"\n"),
                "g.toml:5: intervall: there is no such setting here; did you mean `interval`?",
            ),
            (
                "[[destination]]\nname = \"a\"\ntype = \"fiel\"\n".to_owned(),
                "g.toml:3: type: there is no \"fiel\"; did you mean \"file\"?",
            ),
            (
                "[[destination]]\nname = \"a/b\"\ntype = \"file\"\n".to_owned(),
                "g.toml:2: name: \"a/b\" is no name",
            ),
            ("[[destination]]\nname = \"a\"\ntype = \"file\"\n".to_owned(), "g.toml:1: folder is missing"),
            (
                "[[destination]]\nname = \"a\"\ntype = \"file\"\nfolder = \"f\"\nqeue = \"x\"\n".to_owned(),
                "g.toml:5: qeue: there is no such setting here; did you mean `queue`?",
            ),
            (format!("{SOURCE}{SOURCE}"), "g.toml:5: there are two sources \"plc\""),
            (serial("", ""), "g.toml:1: the device is empty"),
            (serial("/dev/ttyS9", "framing = \"tcp\"\n"), "g.toml:1: framing = \"tcp\" needs an address"),
            (
                serial("/dev/ttyS9", "unit = 248\n"),
                "g.toml:5: unit: the number does not fit; write a whole number from 1 to 247",
            ),
            (
                serial("/dev/ttyS9", "unit = 0\n"),
                "g.toml:5: unit: the number does not fit; write a whole number from 1 to 247",
            ),
            (
                tag("unit = 248\n").replace(SOURCE, &serial("/dev/ttyS9", "")),
                "g.toml:9: unit: the number does not fit; write a whole number from 1 to 247",
            ),
            (
                serial("/dev/ttyS9", "") + &serial("/dev/ttyS9", "").replace("plc", "other"),
                "g.toml:5: source \"plc\" uses the same device; give the tags of both to one source",
            ),
            (
                // Another path of a device that exists.
                serial("/dev/null", "")
                    + "[[source]]\nname = \"scale\"\ntype = \"line\"\ndevice = \"/dev/../dev/null\"\npattern = \"(.*)\"\n",
                "g.toml:5: source \"plc\" uses the same device",
            ),
            (
                tag("").replace("source = \"plc\"", "source = \"plx\""),
                "g.toml:5: there is no source \"plx\"; did you mean \"plc\"?",
            ),
            (tag("scael = 1\n"), "g.toml:9: scael: there is no such setting here; did you mean `scale`?"),
            (tag(&tag("").replace(SOURCE, "")), "g.toml:9: there is another tag plc/a in line 5"),
            (
                tag("access = \"read-write\"\n").replace("holding", "input"),
                "g.toml:5: clients cannot write input values",
            ),
            (
                tag("").replace("name = \"a\"", "name = \"a\"\npath = \"x\"")
                    + "[[tag]]\nsource = \"plc\"\nname = \"b\"\npath = \"x/a\"\naddress = \"coil:1\"\n",
                "g.toml:10: x/a is a tag and a folder",
            ),
            (
                tag("format = \"string\"\nlength = 4\nunits = \"m\"\n"),
                "are for numbers, and this is a String",
            ),
            (
                tag("format = \"float32\"\nstates = [\"0 = Off\"]\n"),
                "are for Booleans and integers, and this is a Float",
            ),
            (tag("count = 2\nstates = [\"0 = Off\"]\n"), "are for single values, and this is an array"),
            (tag("units = \"m\"\nstates = [\"0 = Off\"]\n"), "are for values without units and range"),
            (
                tag("states = [\"0 = Off\"]\n").replace("holding", "coil"),
                "are both or none for a Boolean: 0 and 1",
            ),
            (tag("states = [\"-1 = Off\"]\n"), "are values of the tag, and -1 is no UInt16"),
            (tag("states = [\"1 = Off\", \"1 = On\"]\n"), "are one for each value, and 1 has two"),
        ] {
            let error = mistake(&text);
            assert!(
                error.starts_with(said) || (said.starts_with("are") && error.contains(said)),
                "{error}\n{said}"
            );
        }
    }
}
