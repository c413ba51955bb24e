//! `serve --adapters`: the configuration of a gateway whose sources are child processes that make values, as
//! `taktwerk gateway adapter` does. For loads and demonstrations.

use crate::failure::Failure;
use std::time::Duration;
use taktwerk_load::adapters::Adapters;

/// Timeout for the first values of each adapter.
pub(super) const READY_WITHIN: Duration = Duration::from_secs(20);

/// The configuration, as text.
pub(super) fn configuration(adapters: &Adapters) -> Result<String, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::Environment(format!("cannot find this program: {error}")))?;
    let Some(program) = program.to_str() else {
        return Err(Failure::Environment(format!("{}: the path is not UTF-8", program.display())));
    };
    Ok(text(adapters, program))
}

fn text(adapters: &Adapters, program: &str) -> String {
    let (program, interval) = (toml::Value::from(program), adapters.period_ms);
    let mut text = String::new();
    for name in adapters.names() {
        // A machine that is busy for a moment must not make values uncertain.
        text.push_str(&format!(
            "[[source]]\nname = \"{name}\"\ntype = \"program\"\ncommand = [{program}, \"gateway\", \"adapter\"]\n\
             interval = \"{interval} ms\"\nstale_after = \"{} ms\"\n",
            interval * 2.0 + 5e3
        ));
        for tag in adapters.tag_names() {
            text.push_str(&format!(
                "[[tag]]\nsource = \"{name}\"\nname = \"{tag}\"\ntype = \"Double\"\naccess = \"read-write\"\n"
            ));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use taktwerk_gateway::GatewayConfig;

    #[test]
    fn the_configuration_has_all_sources_and_tags() {
        let text = text(&"3:2:2.5".parse().unwrap(), "/opt/a \"b\"/taktwerk");
        let config = GatewayConfig::parse(Path::new("x"), &text).unwrap().unwrap();
        assert_eq!((config.sources.len(), config.tag_count()), (3, 6));
        let settings = &config.sources[0].settings;
        assert_eq!(settings.interval, Some(Duration::from_micros(2_500)));
        assert_eq!(settings.stale_after, Some(Duration::from_millis(5_005)));
        // The names are those that loads use.
        let nodes = "3:2:2.5".parse::<Adapters>().unwrap().nodes();
        let first = format!("nsu={};s={}", config.namespace, config.sources[0].tags[0].tag.full_name());
        assert_eq!(nodes[0].to_string(), first);
    }
}
