//! Checks that the command is built without symbols, which would be a third of it.

use super::Finding;

const MANIFEST: &str = "Cargo.toml";
const COMMAND: &str = "taktwerk-cli.";
const STRIP: &str = "taktwerk-cli.strip = \"symbols\"";

/// Cargo does not apply a profile's `strip` to a package with its own settings in the profile. Such settings of the
/// command must include `strip`.
pub(super) fn check(manifest: &str) -> Option<Finding> {
    let mut section = "";
    let mut first = None;
    for (line, text) in (1..).zip(manifest.lines()) {
        if text.starts_with('[') {
            section = text;
        } else if section == "[profile.release.package]" && text.starts_with(COMMAND) {
            if text == STRIP {
                return None;
            }
            first = first.or(Some(line));
        }
    }
    let message = format!("the command is built with symbols: add `{STRIP}` to its settings");
    first.map(|line| Finding::new(MANIFEST, line, message))
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn settings_of_the_command_name_strip() {
        let own = "[profile.release]\nstrip = \"symbols\"\n[profile.release.package]\ntaktwerk-cli.opt-level = \"s\"\n";
        assert_eq!(check(own).unwrap().line, 4);
        assert!(check(&format!("{own}taktwerk-cli.strip = \"none\"\n")).is_some());
        assert!(check(&format!("{own}taktwerk-cli.strip = \"symbols\"\n")).is_none());
        assert!(check(&format!("{own}[profile.dev.package]\ntaktwerk-cli.strip = \"symbols\"\n")).is_some());
    }

    #[test]
    fn a_command_without_settings_is_stripped_by_the_profile() {
        assert!(check("[profile.release]\nstrip = \"symbols\"\n[profile.release.package]\n").is_none());
    }
}
