//! Templates: the tags of a type of device, written once, and its instances.
//!
//! `{base}` in a text of a template stands for the instance's parameter `base`, `{base + 3}` for a number behind it. What is
//! no parameter stays as it is: sources have placeholders of their own.

use crate::fields::{Fields, Mistake, Sections, Setting};
use std::collections::{BTreeMap, HashMap};

/// Tags that all instances have together, at most.
const TAGS_MAX: usize = 1_000_000;

/// The tags of a type of device.
struct Template {
    /// Parameters with their defaults.
    parameters: BTreeMap<String, Option<String>>,
    tags: Vec<Fields>,
}

/// Adds the tags of all instances to those of the file; gives what is wrong.
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
    for mut fields in core::mem::take(&mut sections.instances) {
        let examined = fields.examine(&["template"], |fields| instance(fields, &templates));
        let is_right = examined.mistakes.is_empty();
        mistakes.extend(examined.mistakes);
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
fn instance(fields: &mut Fields, templates: &HashMap<String, Template>) -> Result<Vec<Fields>, Mistake> {
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
    let mut values: BTreeMap<String, String> = BTreeMap::new();
    for (key, (line, setting)) in fields.take_all() {
        let known = template.parameters.keys().map(String::as_str);
        match setting.as_text() {
            Some(text) if template.parameters.contains_key(&key) => {
                values.insert(key, text);
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
    for (key, default) in &template.parameters {
        match (values.contains_key(key), default) {
            (true, _) => {}
            (false, Some(default)) => {
                values.insert(key.clone(), default.clone());
            }
            (false, None) => {
                let problem = format!("the template {name:?} needs its parameter {key}");
                return Err(fields.mistake(problem, format!("write {key} = …")));
            }
        }
    }
    values.insert("source".to_owned(), source.clone());
    values.insert("path".to_owned(), path.clone());
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

/// The text with the values of parameters.
fn fill(text: &str, values: &BTreeMap<String, String>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        filled.push_str(before);
        match behind.split_once('}').and_then(|(inner, after)| Some((value(inner, values)?, after))) {
            Some((value, after)) => {
                filled.push_str(&value);
                rest = after;
            }
            None => {
                filled.push('{');
                rest = behind;
            }
        }
    }
    filled.push_str(rest);
    filled
}

/// `base`, `base + 3` or `base - 1`; `None` if it is no parameter.
fn value(inner: &str, values: &BTreeMap<String, String>) -> Option<String> {
    if let Some(value) = values.get(inner.trim()) {
        return Some(value.clone());
    }
    let at = inner.find(['+', '-'])?;
    let (name, distance) = inner.split_at(at);
    let (sign, distance) = distance.split_at(1);
    let distance: i64 = distance.trim().parse().ok()?;
    let base: i64 = values.get(name.trim())?.trim().parse().ok()?;
    let sum = if sign == "+" { base.checked_add(distance)? } else { base.checked_sub(distance)? };
    Some(sum.to_string())
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
        // The registers are those of the parameters: nothing overlaps, and one more tag at holding:202 of unit 7 does.
        assert_eq!(crate::review::review(Path::new("g.toml"), &config), []);
        let more =
            format!("{text}[[tag]]\nsource = \"plc\"\nname = \"x\"\nunit = 7\naddress = \"holding:202.3\"\n");
        let config = GatewayConfig::parse(Path::new("g.toml"), &more).unwrap().unwrap();
        let found = crate::review::review(Path::new("g.toml"), &config);
        assert!(found[0].problem.contains("reads the same as"), "{found:?}");
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
