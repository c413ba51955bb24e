//! `taktwerk pki show`: lists the content of a store.

use super::{StoreArgs, document, folder_name, print_of, problems_document, warn};
use crate::failure::Failure;
use crate::output::Output;
use serde_json::{Value, json};
use taktwerk_crypto::certificate::Certificate;
use taktwerk_lab::table::{Align, Table};
use taktwerk_pki::Folder;

pub(super) fn run(at: &StoreArgs, output: Output) -> Result<(), Failure> {
    let store = at.store()?;
    if !store.exists() {
        return Err(Failure::Environment(format!(
            "there is no certificate store in {}: create one with taktwerk pki init --pki {0}",
            store.root().display()
        )));
    }
    let mut problems = Vec::new();
    let own = store.own(&mut problems);
    let folders = [Folder::Trusted, Folder::Issuers, Folder::Rejected].map(|folder| {
        let entries = match folder {
            Folder::Rejected => store.rejected(at.group(), &mut problems),
            _ => store.entries(at.group(), folder, &mut problems),
        };
        (folder, entries)
    });
    let lists: Vec<_> = [Folder::TrustedLists, Folder::IssuerLists]
        .into_iter()
        .flat_map(|folder| store.revocation_lists(at.group(), folder, &mut problems))
        .collect();
    if output.is_json() {
        let own: Vec<Value> = own.iter().map(|own| document(&own.certificate, Some(&own.path))).collect();
        let mut whole = json!({
            "Store": store.root().display().to_string(),
            "Own": own,
            "RevocationLists": lists.iter().map(|(path, list)| json!({
                "Issuer": list.issuer_text(),
                "ThisUpdate": list.this_update().to_string(),
                "NextUpdate": list.next_update().map(|time| time.to_string()),
                "Revoked": list.revoked_len(),
                "Path": path.display().to_string(),
            })).collect::<Vec<_>>(),
            "Problems": problems_document(&problems),
        });
        for (folder, entries) in &folders {
            let entries: Vec<Value> =
                entries.iter().map(|entry| document(&entry.certificate, Some(&entry.path))).collect();
            whole[folder_name(*folder)] = Value::Array(entries);
        }
        return output.document(&whole);
    }
    let mut table = Table::new(&[
        ("", Align::Left),
        ("thumbprint", Align::Left),
        ("subject", Align::Left),
        ("key", Align::Left),
        ("valid until", Align::Left),
    ]);
    let mut row = |what: &str, certificate: &Certificate| {
        let print = print_of(certificate);
        table.row([
            what.to_owned(),
            print.get(..12).unwrap_or(&print).to_owned(),
            certificate.subject_text(),
            certificate.key().to_string(),
            day(&certificate.not_after().to_string()),
        ]);
    };
    own.iter().for_each(|own| row("own", &own.certificate));
    for (folder, entries) in &folders {
        entries.iter().for_each(|entry| row(folder_name(*folder), &entry.certificate));
    }
    output.text(&format!("{}\n", store.root().display()))?;
    if table.is_empty() {
        output.text("The store has no own certificate: taktwerk pki init creates one.")?;
    } else {
        output.text(&table.to_string())?;
    }
    for (_, list) in &lists {
        let due = list.next_update().map_or("never".to_owned(), |time| day(&time.to_string()));
        output.text(&format!(
            "revocation list of {}: {} revoked, next due {due}",
            list.issuer_text(),
            list.revoked_len()
        ))?;
    }
    warn(&problems);
    Ok(())
}

/// The date of a timestamp.
fn day(time: &str) -> String {
    time.get(..10).unwrap_or(time).to_owned()
}
