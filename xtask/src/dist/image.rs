//! A container image from scratch that contains only the static program, created without a daemon.
//!
//! The file is an archived image layout of the Open Container Initiative that also contains the index for `docker
//! load`. `podman load`, `docker load`, `skopeo copy oci-archive:…` and `ctr image import` accept it.

use super::archive::{Archive, Rights, compressed, read};
use super::stage::Stage;
use super::{Machine, Place, write};
use crate::Failure;
use crate::inputs::digest;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use taktwerk_types::UtcTime;

/// User id of the program, which no distribution uses.
const USER: u64 = 10_001;

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const CONFIGURATION: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Makes the image.
pub(super) fn make(place: &Place, stage: &Stage, program: &Path, machine: Machine) -> Result<(), Failure> {
    let third_party = stage.folder.join("THIRD-PARTY");
    let notices = [("NOTICE", place.root.join("NOTICE")), ("THIRD-PARTY", third_party)];
    let mut texts = Vec::new();
    for (name, path) in notices {
        texts.push((name, read(&path)?));
    }
    let layer = layer(place.time, &read(program)?, &texts)?;
    let image = image(&layer, &place.version, machine, place.time)?;
    write(&place.result(&format!("{}-image.tar", machine.name())), &image)
}

/// The file system of the container.
fn layer(time: u64, program: &[u8], texts: &[(&str, Vec<u8>)]) -> Result<Vec<u8>, Failure> {
    let mut archive = Archive::new(time);
    let folder = Rights { mode: 0o755, owner: 0 };
    let file = Rights { mode: 0o644, owner: 0 };
    // The folder for configuration, certificates and history, which is also the working directory.
    archive.folder("data", Rights { mode: 0o750, owner: USER })?;
    archive.folder("etc", folder)?;
    let user = format!("taktwerk:x:{USER}:{USER}::/data:/sbin/nologin\n");
    archive.file("etc/passwd", file, format!("root:x:0:0::/:/sbin/nologin\n{user}").as_bytes())?;
    archive.file("etc/group", file, format!("root:x:0:\ntaktwerk:x:{USER}:\n").as_bytes())?;
    archive.folder("tmp", Rights { mode: 0o1777, owner: 0 })?;
    for path in ["usr", "usr/bin"] {
        archive.folder(path, folder)?;
    }
    archive.file("usr/bin/taktwerk", Rights { mode: 0o755, owner: 0 }, program)?;
    for path in ["usr/share", "usr/share/doc", "usr/share/doc/taktwerk"] {
        archive.folder(path, folder)?;
    }
    for (name, text) in texts {
        archive.file(&format!("usr/share/doc/taktwerk/{name}"), file, text)?;
    }
    archive.finish()
}

/// The image with one layer.
fn image(layer: &[u8], version: &str, machine: Machine, time: u64) -> Result<Vec<u8>, Failure> {
    let packed = compressed(layer)?;
    let labels = json!({
        "org.opencontainers.image.title": "taktwerk",
        "org.opencontainers.image.description": "OPC UA server, client, PubSub, gateway and laboratory",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
        "org.opencontainers.image.source": "https://github.com/taktwerk/taktwerk",
    });
    let configuration = bytes(&json!({
        "architecture": machine.architecture(),
        "os": "linux",
        "created": date(time),
        "config": {
            "User": format!("{USER}:{USER}"),
            "WorkingDir": "/data",
            "Entrypoint": ["/usr/bin/taktwerk"],
            // The demo: a container started without arguments shows something, to anyone who can reach its port.
            "Cmd": ["serve", "--bind", "0.0.0.0", "--policy", "None"],
            "Env": ["PATH=/usr/bin", "HOME=/data"],
            "ExposedPorts": { "4840/tcp": {}, "8080/tcp": {} },
            "Volumes": { "/data": {} },
            "StopSignal": "SIGTERM",
            "Labels": labels,
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", digest(layer))] },
        "history": [{ "created": date(time), "created_by": "cargo xtask dist" }],
    }));
    let manifest = bytes(&json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": descriptor(CONFIGURATION, &configuration),
        "layers": [descriptor(LAYER, &packed)],
        "annotations": labels,
    }));
    let name = format!("taktwerk:{version}");
    let mut entry = descriptor(MANIFEST, &manifest);
    entry["platform"] = json!({ "architecture": machine.architecture(), "os": "linux" });
    entry["annotations"] = json!({
        "org.opencontainers.image.ref.name": version,
        "io.containerd.image.name": format!("docker.io/library/{name}"),
    });
    let index = bytes(&json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [entry] }));
    let place = |blob: &[u8]| format!("blobs/sha256/{}", digest(blob));
    let docker = bytes(&json!([{
        "Config": place(&configuration),
        "RepoTags": [name],
        "Layers": [place(&packed)],
    }]));
    let mut archive = Archive::new(time);
    let folder = Rights { mode: 0o755, owner: 0 };
    let file = Rights { mode: 0o644, owner: 0 };
    for path in ["blobs", "blobs/sha256"] {
        archive.folder(path, folder)?;
    }
    for blob in [&packed, &configuration, &manifest] {
        archive.file(&place(blob), file, blob)?;
    }
    archive.file("index.json", file, &index)?;
    archive.file("manifest.json", file, &docker)?;
    archive.file("oci-layout", file, &bytes(&json!({ "imageLayoutVersion": "1.0.0" })))?;
    archive.finish()
}

fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn descriptor(kind: &str, blob: &[u8]) -> Value {
    json!({ "mediaType": kind, "digest": format!("sha256:{}", digest(blob)), "size": blob.len() })
}

/// A time in RFC 3339 format.
fn date(time: u64) -> String {
    UtcTime::from_unix(Duration::from_secs(time)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::io::Read;

    fn unpacked(bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut archive = tar::Archive::new(bytes);
        let entries = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let mut contents = Vec::new();
            entry.read_to_end(&mut contents).unwrap();
            (entry.path().unwrap().display().to_string(), contents)
        });
        entries.collect()
    }

    #[test]
    fn the_index_of_an_image_refers_to_the_program() {
        let layer = layer(1_800_000_000, b"program", &[("NOTICE", b"notice".to_vec())]).unwrap();
        let image = image(&layer, "1.2.3", Machine::Aarch64, 1_800_000_000).unwrap();
        let files = unpacked(&image);
        let blob = |descriptor: &Value| {
            let name = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
            let bytes = &files[&format!("blobs/sha256/{name}")];
            assert_eq!(digest(bytes), name);
            assert_eq!(descriptor["size"], bytes.len());
            bytes.clone()
        };
        let parse = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
        let index = parse(&files["index.json"]);
        let manifest = parse(&blob(&index["manifests"][0]));
        let configuration = parse(&blob(&manifest["config"]));
        assert_eq!(configuration["architecture"], "arm64");
        assert_eq!(configuration["created"], "2027-01-15T08:00:00Z");
        let mut inner = Vec::new();
        flate2::read::GzDecoder::new(blob(&manifest["layers"][0]).as_slice())
            .read_to_end(&mut inner)
            .unwrap();
        assert_eq!(configuration["rootfs"]["diff_ids"][0], format!("sha256:{}", digest(&inner)));
        assert_eq!(unpacked(&inner)["usr/bin/taktwerk"], b"program");
        let docker = parse(&files["manifest.json"]);
        assert_eq!(docker[0]["RepoTags"][0], "taktwerk:1.2.3");
        for path in [&docker[0]["Config"], &docker[0]["Layers"][0]] {
            assert!(files.contains_key(path.as_str().unwrap()));
        }
    }
}
