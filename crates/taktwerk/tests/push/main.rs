//! Push management of certificates (Part 12 §7.10), and certificates that are renewed while a server runs.
//!
//! `lists`: trust lists; `audit`: records and events; `renewal`: new certificates; `shared_files`: files with several
//! entries; `attacks`: malicious clients, and clients that stop half way; `full_disk`: changes that cannot be made;
//! `trust`: changes by other processes.
#![allow(clippy::unwrap_used)] // a helper that fails is a test that fails

mod attacks;
mod audit;
mod full_disk;
mod lists;
mod renewal;
mod shared_files;
mod trust;

use std::path::PathBuf;
use taktwerk::pki::Pki;
use taktwerk::schema::TrustListDataType;
use taktwerk::schema::ids::{method_ids as m, object_ids as o};
use taktwerk::server::Authorization;
use taktwerk::server::authorization::IdentityRule;
use taktwerk::types::{ByteString, Encode};
use taktwerk::{
    Client, MessageSecurityMode, NodeId, RunningServer, SecurityPolicy, Server, StatusCode, Variant,
};
use taktwerk_crypto::certificate::Certificate;
use taktwerk_pki::{CertificateSettings, Folder as Part, Group, NewKey};

const POLICY: SecurityPolicy = SecurityPolicy::ECC_nistP256_AesGcm;
const LIST: u32 = o::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_APPLICATION_GROUP_TRUST_LIST;
const GROUP: u32 = o::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_APPLICATION_GROUP;

/// A directory that is removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("taktwerk-push-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn pki(&self, name: &str) -> Pki {
        let settings = CertificateSettings::new(name, &format!("urn:test:{name}"));
        let pki = Pki::in_folder(self.0.join(name)).settings(settings);
        pki.create_missing([NewKey::NistP256]).open().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn own(pki: &Pki) -> Certificate {
    pki.store().own(&mut Vec::new()).remove(0).certificate
}

fn serve(pki: &Pki, role: &str, has_push: bool) -> RunningServer {
    serve_with(pki, role, has_push, MessageSecurityMode::SignAndEncrypt)
}

fn serve_with(pki: &Pki, role: &str, has_push: bool, mode: MessageSecurityMode) -> RunningServer {
    let mut authorization = Authorization::suggested();
    authorization.role_mut(role).unwrap().identities.push(IdentityRule::Anonymous);
    let builder = Server::builder()
        .bind("127.0.0.1:0")
        .anonymous()
        .pki(pki)
        .security(POLICY, mode)
        .authorization(authorization);
    let builder = if has_push { builder.push_management() } else { builder };
    builder.build().unwrap().spawn().unwrap()
}

async fn call(
    client: &Client,
    object: u32,
    method: u32,
    inputs: Vec<Variant>,
) -> Result<Vec<Variant>, StatusCode> {
    let (object, method) = (NodeId::numeric(0, object), NodeId::numeric(0, method));
    client.call_variants(object, method, inputs).await.map_err(|error| error.status())
}

const OPEN: u32 = m::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_APPLICATION_GROUP_TRUST_LIST_OPEN;
const OPEN_WITH_MASKS: u32 =
    m::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_APPLICATION_GROUP_TRUST_LIST_OPEN_WITH_MASKS;
const READ: u32 = m::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_APPLICATION_GROUP_TRUST_LIST_READ;
const WRITE: u32 = m::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_APPLICATION_GROUP_TRUST_LIST_WRITE;
const CLOSE: u32 = m::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_APPLICATION_GROUP_TRUST_LIST_CLOSE;
const UPDATE: u32 =
    m::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_APPLICATION_GROUP_TRUST_LIST_CLOSE_AND_UPDATE;
const ADD: u32 =
    m::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_APPLICATION_GROUP_TRUST_LIST_ADD_CERTIFICATE;
const REMOVE: u32 =
    m::SERVER_CONFIGURATION_CERTIFICATE_GROUPS_DEFAULT_APPLICATION_GROUP_TRUST_LIST_REMOVE_CERTIFICATE;

fn der(certificate: &Certificate) -> ByteString {
    certificate.der().to_vec().into()
}

/// A server and a client that trust each other.
fn pair(folder: &Folder) -> (Pki, Pki) {
    let (ours, theirs) = (folder.pki("server"), folder.pki("client"));
    ours.trust_those_of(&theirs).unwrap();
    theirs.trust_those_of(&ours).unwrap();
    (ours, theirs)
}

async fn connect(running: &RunningServer, pki: &Pki) -> Client {
    Client::builder(&running.url()).pki(pki).connect().await.unwrap()
}

fn trusted(pki: &Pki) -> Vec<Certificate> {
    let entries = pki.store().entries(Group::Applications, Part::Trusted, &mut Vec::new());
    entries.into_iter().map(|entry| entry.certificate).collect()
}

/// Opens the trust list and writes a new one, in pieces. Returns the handle.
async fn written(client: &Client, new: &TrustListDataType) -> Result<Variant, StatusCode> {
    let handle = call(client, LIST, OPEN, vec![6u8.into()]).await?.remove(0);
    for piece in new.encode_to_vec().chunks(50_000) {
        let piece = ByteString::from(piece.to_vec());
        call(client, LIST, WRITE, vec![handle.clone(), piece.into()]).await?;
    }
    Ok(handle)
}

/// Calls a Method of ServerConfiguration.
async fn configure(client: &Client, method: u32, inputs: Vec<Variant>) -> Result<Vec<Variant>, StatusCode> {
    call(client, o::SERVER_CONFIGURATION, method, inputs).await
}

async fn apply(client: &Client) -> Result<Vec<Variant>, StatusCode> {
    configure(client, m::SERVER_CONFIGURATION_APPLY_CHANGES, Vec::new()).await
}

async fn cancel(client: &Client) -> Result<Vec<Variant>, StatusCode> {
    configure(client, m::SERVER_CONFIGURATION_CANCEL_CHANGES, Vec::new()).await
}

/// Sends a certificate with its issuers, and optionally its key in PEM.
async fn send(
    client: &Client,
    certificate: &[u8],
    issuers: &[&Certificate],
    key: &[u8],
) -> Result<Vec<Variant>, StatusCode> {
    let issuers: Vec<ByteString> = issuers.iter().map(|issuer| der(issuer)).collect();
    let inputs = vec![
        NodeId::numeric(0, GROUP).into(),
        NodeId::NULL.into(),
        ByteString::from(certificate.to_vec()).into(),
        issuers.into(),
        "PEM".into(),
        ByteString::from(key.to_vec()).into(),
    ];
    configure(client, m::SERVER_CONFIGURATION_UPDATE_CERTIFICATE, inputs).await
}

/// Requests a signing request with a new key.
async fn ask(
    client: &Client,
    subject: &str,
    new_key: bool,
    nonce: usize,
) -> Result<Vec<Variant>, StatusCode> {
    let nonce = ByteString::from(vec![7; nonce]);
    let group = NodeId::numeric(0, GROUP).into();
    let inputs = vec![group, NodeId::NULL.into(), subject.into(), new_key.into(), nonce.into()];
    configure(client, m::SERVER_CONFIGURATION_CREATE_SIGNING_REQUEST, inputs).await
}
