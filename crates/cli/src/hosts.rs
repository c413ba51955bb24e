//! Host profiles and cost models that are part of the program, by name. The files in `docs/lab/hosts` state the
//! machine, the build and the date of the measurement.

use crate::failure::Failure;
use crate::text_file;
use std::io::ErrorKind;
use std::path::Path;
use taktwerk_config::file;
use taktwerk_model::Model;

/// A measured host.
#[derive(Debug)]
struct Host {
    name: &'static str,
    /// Host profile for the simulator, from `lab calibrate --host`.
    profile: &'static str,
    /// Cost models for `size`, `tune` and headroom, from `model fit -o`.
    models: &'static str,
}

const HOSTS: [Host; 1] = [Host {
    name: "epyc-vm",
    profile: include_str!("../../../docs/lab/hosts/epyc-vm.toml"),
    models: include_str!("../../../docs/lab/hosts/epyc-vm.json"),
}];

/// The kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A host profile.
    Profile,
    /// Cost models.
    Models,
}

/// Reads a file, or the built-in host of this name if `directory` has no such file.
pub(crate) fn read(directory: &Path, name: &Path, kind: Kind) -> Result<String, String> {
    let error = match file::read_text(&directory.join(name), text_file::LEN_MAX) {
        Ok(text) => return Ok(text),
        Err(error) => error,
    };
    let is_missing = error.kind() == ErrorKind::NotFound;
    let host = HOSTS.iter().find(|host| is_missing && Path::new(host.name) == name);
    match (host, kind) {
        (Some(host), Kind::Profile) => Ok(host.profile.to_owned()),
        (Some(host), Kind::Models) => Ok(host.models.to_owned()),
        (None, _) if is_missing => {
            let names: Vec<&str> = HOSTS.iter().map(|host| host.name).collect();
            let names = names.join(", ");
            Err(format!("cannot read {}: {error}; hosts that come with taktwerk: {names}", name.display()))
        }
        (None, _) => Err(format!("cannot read {}: {error}", name.display())),
    }
}

/// The models in a file of this directory (from `model fit -o`), or those of a built-in host.
pub(crate) fn models(directory: &Path, path: &Path) -> Result<Vec<Model>, Failure> {
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::Usage(format!("{} is not a file of models: {error}", path.display()))
    };
    let text = read(directory, path, Kind::Models).map_err(Failure::Usage)?;
    let models: Vec<Model> = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
    let others = models.iter().filter_map(|model| model.origin.as_ref());
    if let Some(origin) = others.into_iter().find(|origin| origin.version != env!("CARGO_PKG_VERSION")) {
        tracing::warn!(
            "{}: measured with version {} on {}, this is {}. Run `taktwerk lab calibrate` and `taktwerk model fit` again",
            path.display(),
            origin.version,
            origin.measured,
            env!("CARGO_PKG_VERSION")
        );
    }
    match models.iter().find_map(Model::problem) {
        Some(problem) => Err(wrong(&problem)),
        None if models.is_empty() => Err(wrong(&"it contains no model")),
        None => Ok(models),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taktwerk_model::HostProfile;
    use taktwerk_sim::Costs;

    #[test]
    fn hosts_match_this_version_and_name_their_source() {
        let version = env!("CARGO_PKG_VERSION");
        for host in HOSTS {
            let profile = HostProfile::parse(host.profile).unwrap();
            profile.check_origin(version, None).unwrap();
            // All counters exist in this build.
            Costs::new(&profile).unwrap();
            assert!(profile.source.contains("measured on 20"), "{}: {}", host.name, profile.source);
            assert!(!profile.source.contains("debug"), "{}: {}", host.name, profile.source);
            assert!(!profile.machine.cpu.is_empty() && !profile.machine.kernel.is_empty(), "{}", host.name);
            let models: Vec<Model> = serde_json::from_str(host.models).unwrap();
            let own = models.iter().find(|model| model.stack == "own").unwrap();
            assert_eq!(own.problem(), None, "{}", host.name);
            let origin = own.origin.as_ref().unwrap();
            assert_eq!((origin.version.as_str(), &origin.machine), (version, &profile.machine.cpu));
            assert!(origin.measured.starts_with("20"), "{origin:?}");
        }
    }

    #[test]
    fn files_have_precedence_and_unknown_names_list_the_hosts() {
        let folder = tempfile::tempdir().unwrap();
        let name = Path::new("epyc-vm");
        let shipped = read(folder.path(), name, Kind::Profile).unwrap();
        assert!(HostProfile::parse(&shipped).is_ok());
        assert_ne!(read(folder.path(), name, Kind::Models).unwrap(), shipped);
        std::fs::write(folder.path().join("epyc-vm"), "mine").unwrap();
        assert_eq!(read(folder.path(), name, Kind::Profile).unwrap(), "mine");
        let error = read(folder.path(), Path::new("vax"), Kind::Profile).unwrap_err();
        assert!(error.starts_with("cannot read vax: ") && error.ends_with("epyc-vm"), "{error}");
        let error = read(folder.path(), Path::new("."), Kind::Profile).unwrap_err();
        assert!(!error.contains("epyc-vm"), "{error}");
    }
}
