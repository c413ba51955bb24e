//! `taktwerk pki`: manages certificates and trust lists.

mod doctor;
mod import;
mod own;
mod show;
mod trust;

use crate::failure::Failure;
use crate::output::Output;
use crate::security::data_folder;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use taktwerk_crypto::certificate::{Certificate, thumbprint};
use taktwerk_pki::store::THUMBPRINT_DIGITS_MIN;
use taktwerk_pki::{Entry, Folder, Group, Problem, Store, thumbprint_text};

/// Arguments of `taktwerk pki`.
#[derive(Debug, Args)]
pub(crate) struct PkiArgs {
    #[command(subcommand)]
    command: PkiCommand,

    #[command(flatten)]
    store: StoreArgs,
}

/// The store, and the trust list in it.
#[derive(Debug, Args)]
struct StoreArgs {
    /// Directory of the store. Default: that of the client commands.
    #[arg(long, value_name = "DIR", global = true, env = "TAKTWERK_PKI")]
    pki: Option<PathBuf>,

    /// Use the store of `taktwerk serve` without --pki.
    #[arg(long, global = true, conflicts_with = "pki")]
    serve: bool,

    /// Use the certificates of users instead of applications.
    #[arg(long, global = true)]
    users: bool,
}

#[derive(Debug, Subcommand)]
enum PkiCommand {
    /// Create the directories, and a self-signed certificate if there is none.
    Init(own::InitArgs),
    /// List own, trusted and rejected certificates.
    Show,
    /// Trust a certificate: a file, or a rejected one by its thumbprint.
    Trust(trust::TrustArgs),
    /// Remove a certificate from the trust list.
    Reject(trust::RejectArgs),
    /// Create a key and a certificate signing request.
    Csr(own::CsrArgs),
    /// Import a certificate, a chain or a revocation list.
    Import(import::ImportArgs),
    /// Explain why a certificate is rejected, and which command fixes it.
    Doctor(doctor::DoctorArgs),
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &PkiArgs, output: Output) -> Result<(), Failure> {
    let at = &arguments.store;
    match &arguments.command {
        PkiCommand::Init(arguments) => own::init(arguments, at, output),
        PkiCommand::Show => show::run(at, output),
        PkiCommand::Trust(arguments) => trust::trust(arguments, at, output),
        PkiCommand::Reject(arguments) => trust::reject(arguments, at, output),
        PkiCommand::Csr(arguments) => own::csr(arguments, at, output),
        PkiCommand::Import(arguments) => import::run(arguments, at, output),
        PkiCommand::Doctor(arguments) => doctor::run(arguments, at, output),
    }
}

impl StoreArgs {
    fn store(&self) -> Result<Store, Failure> {
        if let Some(folder) = &self.pki {
            return Ok(Store::at(folder));
        }
        let data = data_folder()?;
        Ok(Store::at(if self.serve { data.join("demo-server").join("pki") } else { data.join("pki") }))
    }

    fn group(&self) -> Group {
        if self.users { Group::Users } else { Group::Applications }
    }

    /// Finds a certificate by file or by the beginning of its thumbprint.
    fn find(&self, store: &Store, what: &str) -> Result<Entry, Failure> {
        let path = Path::new(what);
        if path.is_file() {
            let chain = Store::read_certificates(path).map_err(Failure::Usage)?;
            let mut chain = chain.into_iter();
            let certificate =
                chain.next().ok_or_else(|| Failure::Usage(format!("{what} contains no certificate")))?;
            return Ok(Entry { path: path.to_owned(), certificate, behind: chain.collect() });
        }
        let mut found = store.find(self.group(), what);
        if found.len() > 1 {
            let line = |(folder, entry): &(Folder, Entry)| {
                let subject = entry.certificate.subject_text();
                format!("  {}  {} ({})", entry.thumbprint(), subject, folder_name(*folder))
            };
            let lines: Vec<String> = found.iter().map(line).collect();
            return Err(Failure::Usage(format!(
                "the thumbprints of {} certificates begin with {what}; write more digits:\n{}",
                found.len(),
                lines.join("\n")
            )));
        }
        found.pop().map(|(_, entry)| entry).ok_or_else(|| missing(what, store))
    }
}

fn missing(what: &str, store: &Store) -> Failure {
    Failure::Usage(format!(
        "{what} is neither a file nor the beginning ({THUMBPRINT_DIGITS_MIN} digits or more) of a thumbprint in {}; see \
         taktwerk pki show",
        store.root().display()
    ))
}

/// The store cannot be read or written.
fn unusable(store: &Store, error: &std::io::Error) -> Failure {
    Failure::Environment(format!("{}: {error}", store.root().display()))
}

/// Prints warnings about files that are ignored.
fn warn(problems: &[Problem]) {
    for problem in problems {
        tell!("warning: {problem}");
    }
}

fn print_of(certificate: &Certificate) -> String {
    thumbprint_text(&thumbprint(certificate.der()))
}

/// A certificate as JSON.
fn document(certificate: &Certificate, path: Option<&Path>) -> Value {
    let extensions = certificate.extensions();
    let mut hosts = extensions.dns_names.clone();
    hosts.extend(extensions.ip_addresses.iter().map(ToString::to_string));
    json!({
        "Thumbprint": print_of(certificate),
        "Subject": certificate.subject_text(),
        "Issuer": certificate.issuer_text(),
        "SelfIssued": certificate.is_self_issued(),
        "ApplicationUris": extensions.uris,
        "Hosts": hosts,
        "Key": certificate.key().to_string(),
        "SignatureAlgorithm": certificate.signature_algorithm().to_string(),
        "NotBefore": certificate.not_before().to_string(),
        "NotAfter": certificate.not_after().to_string(),
        "Authority": certificate.is_authority(),
        "Path": path.map(|path| path.display().to_string()),
    })
}

fn problems_document(problems: &[Problem]) -> Value {
    problems
        .iter()
        .map(|problem| json!({ "Path": problem.path.display().to_string(), "Problem": problem.what }))
        .collect()
}

/// The display name of a folder.
fn folder_name(folder: Folder) -> &'static str {
    match folder {
        Folder::Trusted => "trusted",
        Folder::Issuers => "issuer",
        _ => "rejected",
    }
}
