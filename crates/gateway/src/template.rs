//! Templates: the tags of a type of device, defined once, and their instances.
//!
//! `{base}` in a text of a template is replaced by the instance's parameter `base`; `{base + 3}` adds to a number. Other braces
//! stay, because sources have their own placeholders.

mod budget;
mod fill;

use crate::fields::{Fields, Mistake, Sections, Setting};
use budget::{Budget, TooMuch};
use fill::{Values, fill};
use std::collections::{BTreeMap, HashMap};

/// Most tags of all instances together.
const TAGS_MAX: usize = 1_000_000;

/// The tags of a type of device.
struct Template {
    /// Parameters with their defaults.
    parameters: BTreeMap<String, Option<String>>,
    tags: Vec<Fields>,
}

/// Adds the tags of all instances to those of the file. Returns the mistakes.
pub fn expand(sections: &mut Sections) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    let mut templates: HashMap<String, Template> = HashMap::new();
    for mut fields in core::mem::take(&mut sections.templates) {
        let examined = fields.examine(&["name"], take_template);
        mistakes.extend(examined.mistakes);
        match examined.value {
            Some((name, _)) if templates.contains_key(&name) => {
                let problem = format!("there are two templates {name:?}");
                mistakes.push(fields.mistake(problem, "give each its own name"));
            }
            Some((name, template)) => {
                templates.insert(name, template);
            }
            None => {}
        }
    }
    let mut budget = Budget::default();
    for mut fields in core::mem::take(&mut sections.instances) {
        let examined = fields.examine(&["template"], |fields| instance(fields, &templates, &mut budget));
        let is_right = examined.mistakes.is_empty();
        mistakes.extend(examined.mistakes);
        if budget.is_spent() {
            return mistakes;
        }
        match examined.value {
            Some(tags) if sections.tags.len() + tags.len() > TAGS_MAX => {
                let problem = format!("there are more than {TAGS_MAX} tags");
                mistakes.push(fields.mistake(problem, "use several gateways"));
                return mistakes;
            }
            Some(tags) if is_right => sections.tags.extend(tags),
            _ => {}
        }
    }
    mistakes
}

fn take_template(fields: &mut Fields) -> Result<(String, Template), Mistake> {
    let (_, name) = fields.required("name", "\"oven\"")?;
    let mut parameters = BTreeMap::new();
    for parameter in fields.texts("parameters")?.unwrap_or_default() {
        let (key, default) = match parameter.split_once('=') {
            Some((key, default)) => (key.trim(), Some(default.trim().to_owned())),
            None => (parameter.trim(), None),
        };
        let is_name = |char: char| char.is_ascii_alphanumeric() || char == '_';
        if key.is_empty() || !key.chars().all(is_name) || ["template", "source", "path"].contains(&key) {
            let hint = "write parameters = [\"base\", \"unit = 1\"]; source and path are there anyway";
            return Err(fields.mistake(format!("{parameter:?} is no parameter"), hint));
        }
        parameters.insert(key.to_owned(), default);
    }
    let mut tags = Vec::new();
    let list = fields.take("tag");
    let Some((_, Setting::List(list))) = list else {
        return Err(fields.mistake("the template has no tags", "add a [[template.tag]] for each value"));
    };
    for (line, setting) in list {
        let Setting::Table(entries) = setting else {
            return Err(fields.mistake_in(line, "tag", "this is no section", "write [[template.tag]]"));
        };
        tags.push(fields.within(line, entries));
    }
    fields.finish()?;
    Ok((name, Template { parameters, tags }))
}

/// The tags of an instance.
fn instance(
    fields: &mut Fields,
    templates: &HashMap<String, Template>,
    budget: &mut Budget,
) -> Result<Vec<Fields>, Mistake> {
    let (line, name) = fields.required("template", "\"oven\"")?;
    let Some(template) = templates.get(&name) else {
        let hint = match taktwerk_config::nearest(&name, templates.keys().map(String::as_str)) {
            Some(near) => format!("did you mean {near:?}?"),
            None => "add a [[template]] with this name".to_owned(),
        };
        return Err(fields.mistake_in(line, "template", format!("there is no template {name:?}"), hint));
    };
    let (source_line, source) = fields.required("source", "\"plc\"")?;
    let (path_line, path) = fields.required("path", "\"Line 1/Oven 1\"")?;
    let mut own: BTreeMap<String, String> = BTreeMap::new();
    for (key, (line, setting)) in fields.take_all() {
        let known = template.parameters.keys().map(String::as_str);
        match setting.as_text() {
            Some(text) if template.parameters.contains_key(&key) => {
                own.insert(key, text);
            }
            Some(_) => {
                let hint = match taktwerk_config::nearest(&key, known.clone()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("its parameters are {}", known.collect::<Vec<_>>().join(", ")),
                };
                let problem = format!("the template {name:?} has no such parameter");
                return Err(fields.mistake_in(line, &key, problem, hint));
            }
            None => {
                let hint = "write a text or a number";
                return Err(fields.mistake_in(line, &key, "this is no value of a parameter", hint));
            }
        }
    }
    let mut values: Values<'_> = BTreeMap::from([("source", source.as_str()), ("path", path.as_str())]);
    for (key, default) in &template.parameters {
        let Some(value) = own.get(key).or(default.as_ref()) else {
            let problem = format!("the template {name:?} needs its parameter {key}");
            return Err(fields.mistake(problem, format!("write {key} = …")));
        };
        values.insert(key, value);
    }
    for (line, key, text) in [(path_line, "path", &path), (source_line, "source", &source)] {
        if !budget::is_short(text) {
            return Err(fields.mistake_in(line, key, TooMuch::Text.problem(), TooMuch::Text.hint()));
        }
    }
    // Count everything first, so that nothing is created beyond the limit.
    for tag in &template.tags {
        budget.tag(tag, fields.line(), &values, path.len() + source.len())?;
    }
    let tags = template.tags.iter().map(|tag| {
        let mut tag = tag.instantiate(fields.line(), &|text| fill(text, &values));
        let below = match tag.get("path") {
            Some(Setting::Text(below)) => format!("{path}/{below}"),
            _ => path.clone(),
        };
        tag.put("path", path_line, Setting::Text(below));
        if !tag.has("source") {
            tag.put("source", source_line, Setting::Text(source.clone()));
        }
        tag
    });
    Ok(tags.collect())
}

#[cfg(test)]
mod tests {
    use crate::GatewayConfig;
    use std::path::Path;

    const HEAD: &str = "[[source]]\nname = \"plc\"\ntype = \"modbus\"\naddress = \"localhost\"\n\
                        [[template]]\nname = \"oven\"\nparameters = [\"base\", \"unit = 1\"]\n\
                        [[template.tag]]\nname = \"T\"\naddress = \"holding:{base}\"\nunit = \"{unit}\"\nscale = 0.1\n\
                        [[template.tag]]\nname = \"Ready\"\npath = \"State\"\naddress = \"holding:{base + 2}.3\"\nunit = \"{ unit }\"\n\
                        description = \"of {path}, {not} {\"\n";

    fn mistake(more: &str) -> String {
        GatewayConfig::parse(Path::new("g.toml"), &format!("{HEAD}{more}")).unwrap_err().to_string()
    }

    #[test]
    fn instances_have_the_tags_of_their_template() {
        let text = format!(
            "{HEAD}[[instance]]\ntemplate = \"oven\"\nsource = \"plc\"\npath = \"Line 1/Oven 1\"\nbase = 100\n\
             [[instance]]\ntemplate = \"oven\"\nsource = \"plc\"\npath = \"Line 1/Oven 2\"\nbase = 200\nunit = 7\n"
        );
        let config = GatewayConfig::parse(Path::new("g.toml"), &text).unwrap().unwrap();
        let names: Vec<String> = config.sources[0].tags.iter().map(|it| it.tag.full_name()).collect();
        assert_eq!(
            names,
            ["Line 1/Oven 1/T", "Line 1/Oven 1/State/Ready", "Line 1/Oven 2/T", "Line 1/Oven 2/State/Ready"]
        );
        let description = config.sources[0].tags[3].tag.description.clone();
        assert_eq!(description.as_deref(), Some("of Line 1/Oven 2, {not} {"));
        // The registers follow the parameters: no overlaps. One more tag at holding:202 of unit 7 overlaps.
        assert_eq!(crate::review::review(Path::new("g.toml"), &config), []);
        let more =
            format!("{text}[[tag]]\nsource = \"plc\"\nname = \"x\"\nunit = 7\naddress = \"holding:202.3\"\n");
        let config = GatewayConfig::parse(Path::new("g.toml"), &more).unwrap().unwrap();
        let found = crate::review::review(Path::new("g.toml"), &config);
        assert!(found[0].problem.contains("reads the same as"), "{found:?}");
    }

    /// A file with `tags` tags per instance, whose texts become very long when expanded.
    fn bomb(tags: usize, places: usize, instances: usize, x: usize) -> String {
        let mut text = "[[source]]\nname = \"s\"\ntype = \"simulation\"\n\
                        [[template]]\nname = \"a\"\nparameters = [\"x\"]\n"
            .to_owned();
        for tag in 0..tags {
            let description = "{x}".repeat(places);
            text += &format!("[[template.tag]]\nname = \"t{tag}\"\ndescription = \"{description}\"\n");
        }
        for at in 0..instances {
            let x = "y".repeat(x);
            text +=
                &format!("[[instance]]\ntemplate = \"a\"\nsource = \"s\"\npath = \"p{at}\"\nx = \"{x}\"\n");
        }
        text
    }

    #[test]
    fn too_long_texts_are_rejected_before_expansion() {
        let refused =
            |text: &str| GatewayConfig::parse(Path::new("g.toml"), text).map(drop).unwrap_err().to_string();
        // 620 kB that would expand to 30 GB.
        assert_eq!(
            refused(&bomb(100, 1_000, 300, 1_000)),
            "g.toml:9: description: with its parameters, the text is longer than 65536 bytes \
             (for the instance in line 307); write a shorter text"
        );
        // Each text is short enough by itself.
        let many = refused(&bomb(100, 60, 300, 1_000));
        assert!(many.starts_with("g.toml:"), "{many}");
        assert!(
            many.contains(
                ": description: all texts of all instances together are longer than 134217728 bytes (for the"
            ),
            "{many}"
        );
        // Text repeated in each tag of an instance.
        let path = "p".repeat(100_000);
        let text = bomb(2, 1, 1, 1).replace("path = \"p0\"", &format!("path = \"{path}\""));
        assert!(refused(&text).starts_with("g.toml:16: path: with its parameters, the text is longer than"));
        // A text of braces is scanned once.
        let text = bomb(1, 1, 3, 1).replace("{x}", &"{".repeat(60_000));
        assert!(GatewayConfig::parse(Path::new("g.toml"), &text).is_ok());
        let text = bomb(1, 1, 3, 1).replace("{x}", &format!("{}}}", "{".repeat(60_000)));
        assert!(GatewayConfig::parse(Path::new("g.toml"), &text).is_ok());
    }

    #[test]
    fn mistakes_name_the_template_and_the_instance() {
        let instance = |more: &str| {
            mistake(&format!("[[instance]]\ntemplate = \"oven\"\nsource = \"plc\"\npath = \"a\"\n{more}"))
        };
        assert_eq!(instance(""), "g.toml:19: the template \"oven\" needs its parameter base; write base = …");
        assert_eq!(
            instance("base = 1\nunti = 2\n"),
            "g.toml:24: unti: the template \"oven\" has no such parameter; did you mean `unit`?"
        );
        let wrong = instance("base = \"x\"\n");
        assert!(
            wrong.starts_with(
                "g.toml:10: address: \"holding:x\" is no Modbus address (for the instance in line 19)"
            ),
            "{wrong}"
        );
        let wrong = mistake("[[instance]]\ntemplate = \"ovn\"\nsource = \"plc\"\npath = \"a\"\n");
        assert_eq!(wrong, "g.toml:20: template: there is no template \"ovn\"; did you mean \"oven\"?");
        assert!(mistake("[[template]]\nname = \"x\"\n").contains("the template has no tags"));
        assert!(
            mistake("[[template]]\nname = \"x\"\nparameters = [\"source\"]\n").contains("is no parameter")
        );
    }
}
