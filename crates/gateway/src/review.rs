//! Warnings about valid but probably unintended configurations: similar names, inconsistent times, ranges that a type cannot
//! hold. Warnings specific to a kind of source or destination come from [`Adapter::review`] and [`Sink::review`].
//!
//! [`Adapter::review`]: crate::source::Adapter::review
//! [`Sink::review`]: crate::destination::Sink::review

use crate::configuration::{GatewayConfig, SourceConfig, TagConfig, references};
use crate::destination::Concern;
use crate::fields::Mistake;
use crate::settings::SourceSettings;
use crate::source::Placement;
use std::collections::HashMap;
use std::path::Path;
use taktwerk_types::BuiltInType;

/// Reviews a configuration without mistakes; `path` is its file.
#[must_use]
pub fn review(path: &Path, config: &GatewayConfig) -> Vec<Mistake> {
    let mut warnings = Vec::new();
    for source in &config.sources {
        times(path, source, &mut warnings);
        let placed: Vec<&TagConfig> =
            source.tags.iter().filter(|it| matches!(it.placement, Placement::Variable(_))).collect();
        let names: Vec<String> = placed.iter().map(|it| it.tag.full_name()).collect();
        for advice in source.adapter.review(&source.settings, &names) {
            let tag = advice.position.and_then(|position| placed.get(position));
            warnings.push(Mistake {
                path: tag.map_or_else(|| path.to_owned(), |tag| tag.path.clone()),
                line: tag.map_or(source.line, |tag| tag.line),
                key: advice.key.to_owned(),
                problem: advice.problem,
                hint: advice.hint,
            });
        }
        for tag in &source.tags {
            numbers(tag, &source.settings, &mut warnings);
        }
    }
    references::unmatched(path, config, &mut warnings);
    destinations(path, config, &mut warnings);
    alike(config, &mut warnings);
    warnings
}

/// Destinations that cannot work with their tags.
fn destinations(path: &Path, config: &GatewayConfig, warnings: &mut Vec<Mistake>) {
    for destination in &config.destinations {
        let placed = config.sources.iter().flat_map(|source| &source.tags);
        let names = placed.map(|it| it.tag.full_name()).filter(|name| destination.settings.takes(name));
        let names = names.chain(destination.settings.nodes.iter().map(|field| field.name.to_string()));
        if let Some(Concern { key, problem, hint }) = destination.sink.review(&names.collect::<Vec<_>>()) {
            let (path, line, key) = (path.to_owned(), destination.line, key.to_owned());
            warnings.push(Mistake { path, line, key, problem, hint });
        }
    }
}

/// Inconsistent settings of a source.
fn times(path: &Path, source: &SourceConfig, warnings: &mut Vec<Mistake>) {
    let settings = &source.settings;
    let mut warn = |key: &str, problem: String, hint: &str| {
        let hint = hint.to_owned();
        warnings.push(Mistake {
            path: path.to_owned(),
            line: source.line,
            key: key.to_owned(),
            problem,
            hint,
        });
    };
    let name = &settings.name;
    if source.tags.is_empty() && !source.adapter.finds_variables() {
        warn("", format!("source {name:?} has no tags"), "add a [[tag]] for each value");
    }
    if let (Some(interval), Some(stale)) = (settings.interval, settings.stale_after)
        && stale <= interval
    {
        let problem = format!("{stale:?} is not longer than the interval of {interval:?}");
        warn("stale_after", problem, "values become uncertain between two reads; use two intervals or more");
    }
    let stale = settings.stale_after.or(settings.interval.map(|interval| interval * 2));
    if let Some(stale) = stale
        && settings.lost_after < stale
    {
        let problem = format!("{:?} is shorter than stale_after ({stale:?})", settings.lost_after);
        warn("lost_after", problem, "values become bad at the later of both times");
    }
    if settings.deadline > settings.lost_after {
        let problem =
            format!("{:?} is longer than lost_after ({:?})", settings.deadline, settings.lost_after);
        warn(
            "deadline",
            problem,
            "a device that does not respond is noticed only after its values have become bad",
        );
    }
    if settings.retry > settings.retry_max {
        let problem = format!("{:?} is longer than retry_max ({:?})", settings.retry, settings.retry_max);
        warn("retry", problem, "the first pause is then longer than all others");
    }
}

/// Inconsistent settings of a tag.
fn numbers(it: &TagConfig, source: &SourceSettings, warnings: &mut Vec<Mistake>) {
    let (tag, interval) = (&it.tag, source.interval);
    let mut warn = |key: &str, problem: String, hint: &str| {
        let (key, hint) = (key.to_owned(), hint.to_owned());
        warnings.push(Mistake { path: it.path.clone(), line: it.line, key, problem, hint });
    };
    if let (Some(every), Some(interval)) = (tag.expect_every, interval)
        && every < interval
    {
        let problem = format!("{every:?} is shorter than the source's interval of {interval:?}");
        warn("expect_every", problem, "the value is uncertain between two reads; leave it out");
    }
    if let (Some(stale), Some(interval)) = (tag.stale_after, interval)
        && stale <= interval
    {
        let problem = format!("{stale:?} is not longer than the source's interval of {interval:?}");
        warn(
            "stale_after",
            problem,
            "the value becomes uncertain between two reads; use two intervals or more",
        );
    }
    let lost = tag.lost_after.unwrap_or(source.lost_after);
    if let Some(stale) = tag.stale_after_in(source)
        && (tag.stale_after.is_some() || tag.lost_after.is_some())
        && lost < stale
    {
        let key = if tag.lost_after.is_some() { "lost_after" } else { "stale_after" };
        let problem = format!("lost_after is {lost:?} and stale_after {stale:?}");
        warn(key, problem, "the value becomes bad at the later of both times");
    }
    if let Some((low, high)) = tag.range {
        if tag.deadband >= high - low {
            let problem = format!("{} is as wide as the range of {low} to {high}", tag.deadband);
            warn("deadband", problem, "no change within the range is stored; use a smaller one");
        }
        if let Some((least, most)) = tag.scaling.clamp
            && (most <= low || least >= high)
        {
            let problem = format!("{least} to {most} is outside the range of {low} to {high}");
            warn("clamp", problem, "check both");
        }
        if let Some((least, most)) = tag.kind.and_then(bounds)
            && (low < least || high > most)
        {
            let problem =
                format!("{low} to {high} does not fit into the type, which ends at {least} and {most}");
            warn("range", problem, "values beyond are Bad_TypeMismatch; use a wider type");
        }
    }
}

/// The bounds of a whole number's type.
fn bounds(kind: BuiltInType) -> Option<(f64, f64)> {
    Some(match kind {
        BuiltInType::SByte => (f64::from(i8::MIN), f64::from(i8::MAX)),
        BuiltInType::Byte => (0.0, f64::from(u8::MAX)),
        BuiltInType::Int16 => (f64::from(i16::MIN), f64::from(i16::MAX)),
        BuiltInType::UInt16 => (0.0, f64::from(u16::MAX)),
        BuiltInType::Int32 => (f64::from(i32::MIN), f64::from(i32::MAX)),
        BuiltInType::UInt32 => (0.0, f64::from(u32::MAX)),
        _ => return None,
    })
}

/// Tags whose names differ only in case.
fn alike(config: &GatewayConfig, warnings: &mut Vec<Mistake>) {
    let mut seen: HashMap<String, &TagConfig> = HashMap::new();
    for it in config.sources.iter().flat_map(|source| &source.tags) {
        let name = it.tag.full_name();
        match seen.get(&name.to_lowercase()) {
            Some(other) if other.tag.full_name() != name => warnings.push(Mistake {
                path: it.path.clone(),
                line: it.line,
                key: "name".to_owned(),
                problem: format!("{name} differs from {} in case only", other.tag.full_name()),
                hint: "give one of them another name".to_owned(),
            }),
            Some(_) => {}
            None => {
                seen.insert(name.to_lowercase(), it);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warnings(text: &str) -> Vec<String> {
        let path = Path::new("g.toml");
        let config = GatewayConfig::parse(path, text).unwrap().unwrap();
        review(path, &config).iter().map(ToString::to_string).collect()
    }

    fn modbus(settings: &str, tags: &[&str]) -> Vec<String> {
        let mut text =
            format!("[[source]]\nname = \"plc\"\ntype = \"modbus\"\naddress = \"localhost\"\n{settings}\n");
        for (number, tag) in tags.iter().enumerate() {
            let name = if tag.contains("name =") { String::new() } else { format!("name = \"t{number}\"\n") };
            text.push_str(&format!("[[tag]]\nsource = \"plc\"\n{name}{tag}\n"));
        }
        warnings(&text)
    }

    #[test]
    fn usual_configurations_have_no_warning() {
        let tags = [
            "address = \"holding:0\"\nformat = \"float32\"\nrange = [0, 100]\ndeadband = 0.5",
            "address = \"holding:2\"",
            "address = \"holding:3.0\"",
            "address = \"holding:3.1\"",
            // The word and its bits.
            "address = \"holding:3\"",
            "address = \"coil:3\"",
            // The same register of another unit.
            "address = \"holding:0\"\nunit = 2",
            // An array, and an element of it.
            "address = \"input:10\"\ncount = 5",
            "address = \"input:12\"",
        ];
        assert_eq!(modbus("", &tags), Vec::<String>::new());
    }

    #[test]
    fn missing_programs_are_found() {
        let program = |command: &str| {
            let text =
                "[[source]]\nname = \"p\"\ntype = \"program\"\n[[tag]]\nsource = \"p\"\nname = \"x\"\n";
            warnings(&text.replace("[[tag]]", &format!("command = {command}\n[[tag]]")))
        };
        assert_eq!(program("[\"sh\", \"adapter.sh\"]"), Vec::<String>::new());
        assert!(program("[\"there is none\"]")[0].contains("there is no program \"there is none\""));
        let found = program("\"sh adapter.sh\"");
        assert!(found[0].ends_with("command = [\"sh\", \"adapter.sh\"]"), "{found:?}");
    }

    #[test]
    fn devices_with_too_large_births_are_found() {
        let text = |settings: &str| {
            let mut text = "[[source]]\nname = \"s\"\ntype = \"simulation\"\n".to_owned();
            for number in 0..100 {
                text.push_str(&format!(
                    "[[tag]]\nsource = \"s\"\nname = \"T{number}\"\npath = \"Line {}\"\n",
                    number % 2
                ));
            }
            text + "[[destination]]\nname = \"d\"\ntype = \"sparkplug\"\nurl = \"mqtt://localhost\"\ngroup = \"G\"\nnode = \"E\"\n"
                + settings
        };
        assert_eq!(
            warnings(&text("payload_max = 1000\n")),
            [
                "g.toml:404: payload_max: the birth of the device \"Line 0\" with 50 metrics has about 1645 bytes, more than 1000; \
              set payload_max to more, or device_levels so that devices have fewer metrics"
            ]
        );
        assert_eq!(warnings(&text("payload_max = 1000\ntags = [\"Line 1/T1*\"]\n")), Vec::<String>::new());
        assert_eq!(warnings(&text("payload_max = 2000\n")), Vec::<String>::new());
        let found = warnings(&text("payload_max = 2000\ndevice_levels = 0\n"));
        assert!(found[0].contains("the birth of the node with 100 metrics has about"), "{found:?}");
    }

    #[test]
    fn registers_that_overlap_are_found() {
        let found = modbus(
            "",
            &[
                "address = \"holding:0\"\nformat = \"float32\"",
                "address = \"holding:1\"\nformat = \"float32\"",
                "address = \"holding:7\"",
                "address = \"40008\"",
            ],
        );
        assert_eq!(
            found,
            [
                "g.toml:11: address: holding 1 to 2 overlaps plc/t0 (holding 0 to 1); check the addresses and formats",
                "g.toml:20: address: reads the same as plc/t2; remove one of them",
            ]
        );
    }

    #[test]
    fn intervals_too_short_for_a_line_are_found() {
        let tags: Vec<String> = (0..10).map(|at| format!("address = \"holding:{}\"", at * 200)).collect();
        let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
        let found = modbus("interval = \"10 ms\"", &tags);
        assert!(
            found[0].starts_with("g.toml:1: interval: 10 requests in 10ms leave 1ms for each"),
            "{found:?}"
        );
        assert_eq!(modbus("interval = \"1 s\"", &tags), Vec::<String>::new());
        let serial = "[[source]]\nname = \"s\"\ntype = \"modbus\"\ndevice = \"/dev/ttyS0\"\nbaud = 9600\n\
                      interval = \"100 ms\"\n[[tag]]\nsource = \"s\"\nname = \"a\"\naddress = \"holding:0\"\ncount = 100\n";
        let found = warnings(serial);
        assert!(found[0].contains("interval: reading all tags takes about 25"), "{found:?}");
    }

    #[test]
    fn inconsistent_times_of_a_tag_are_found() {
        let of_tag = |settings: &str| modbus("", &[&format!("address = \"holding:0\"\n{settings}")]);
        assert_eq!(of_tag("stale_after = \"5 s\"\nlost_after = \"1 min\""), Vec::<String>::new());
        let found = of_tag("stale_after = \"100 ms\"");
        assert!(found[0].contains(": stale_after: 100ms is not longer"), "{found:?}");
        let found = of_tag("lost_after = \"100 ms\"");
        assert!(found[0].contains(": lost_after: lost_after is 100ms and stale_after 2s"), "{found:?}");
        let found = of_tag("stale_after = \"1 min\"");
        assert!(found[0].contains(": stale_after: lost_after is 10s and stale_after 60s"), "{found:?}");
    }

    #[test]
    fn inconsistent_times_and_numbers_are_found() {
        let all = modbus(
            "stale_after = \"1 s\"\nlost_after = \"500 ms\"\nretry = \"1 min\"",
            &["address = \"holding:0\"\ntype = \"Byte\"\nrange = [0, 300]\ndeadband = 300\nclamp = [400, 500]\n\
               expect_every = \"100 ms\""],
        )
        .join("\n");
        for key in
            ["stale_after", "lost_after", "deadline", "retry", "expect_every", "deadband", "clamp", "range"]
        {
            assert!(all.contains(&format!(": {key}: ")), "{key} in {all}");
        }
        let found = modbus(
            "",
            &["name = \"Level\"\naddress = \"input:0\"", "name = \"level\"\naddress = \"input:1\""],
        );
        assert_eq!(
            found,
            ["g.toml:10: name: plc/level differs from plc/Level in case only; give one of them another name"]
        );
        assert_eq!(modbus("", &[]), ["g.toml:1: source \"plc\" has no tags; add a [[tag]] for each value"]);
    }
}
