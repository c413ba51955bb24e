//! NodeSets that administrators load with Methods.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use taktwerk::client::{EventQuery, Item, Update};
use taktwerk::pki::Pki;
use taktwerk::server::authorization::IdentityRule;
use taktwerk::server::{AuditConfig, AuditRecord, AuditSink, Authorization, NodeSetMethods, NodeSetRemoval};
use taktwerk::types::ByteString;
use taktwerk::{
    Client, MessageSecurityMode, NodeId, RunningServer, SecurityPolicy, Server, StatusCode, Variant,
};
use taktwerk_pki::{CertificateSettings, NewKey};

const POLICY: SecurityPolicy = SecurityPolicy::ECC_nistP256_AesGcm;
const SOON: Duration = Duration::from_secs(30);
const LINE: &str = "urn:line";

/// A NodeSet with Variables in a folder that has a NodeVersion. `required` is a model that it needs.
fn nodeset(uri: &str, variables: &[(u32, f64)], required: Option<&str>) -> String {
    let node = |(id, value): &(u32, f64)| {
        format!(
            "<UAVariable NodeId=\"ns=1;i={id}\" BrowseName=\"1:V{id}\" DataType=\"i=11\" AccessLevel=\"3\"><References>\
             <Reference ReferenceType=\"i=47\" IsForward=\"false\">ns=1;i=100</Reference>\
             <Reference ReferenceType=\"i=40\">i=63</Reference></References>\
             <Value><Double xmlns=\"http://opcfoundation.org/UA/2008/02/Types.xsd\">{value}</Double></Value></UAVariable>"
        )
    };
    let required = required.map_or_else(String::new, |uri| format!("<RequiredModel ModelUri=\"{uri}\"/>"));
    format!(
        "<UANodeSet xmlns=\"http://opcfoundation.org/UA/2011/03/UANodeSet.xsd\">\
         <NamespaceUris><Uri>{uri}</Uri></NamespaceUris>\
         <Models><Model ModelUri=\"{uri}\">{required}</Model></Models>\
         <UAObject NodeId=\"ns=1;i=100\" BrowseName=\"1:Folder\"><References>\
         <Reference ReferenceType=\"i=35\" IsForward=\"false\">i=85</Reference>\
         <Reference ReferenceType=\"i=40\">i=61</Reference></References></UAObject>\
         <UAVariable NodeId=\"ns=1;i=101\" BrowseName=\"NodeVersion\" DataType=\"i=12\"><References>\
         <Reference ReferenceType=\"i=46\" IsForward=\"false\">ns=1;i=100</Reference>\
         <Reference ReferenceType=\"i=40\">i=68</Reference></References></UAVariable>{}</UANodeSet>",
        variables.iter().map(node).collect::<String>()
    )
}

fn pki(folder: &Path, name: &str) -> Pki {
    let settings = CertificateSettings::new(name, &format!("urn:test:{name}"));
    Pki::in_folder(folder.join(name)).settings(settings).create_missing([NewKey::NistP256]).open().unwrap()
}

/// Keeps audit records.
#[derive(Debug, Default)]
struct Records(Mutex<Vec<String>>);

impl AuditSink for Records {
    fn record(&self, record: &AuditRecord) {
        self.0.lock().unwrap().push(format!("{record:?}"));
    }
}

struct Site {
    folder: tempfile::TempDir,
    records: Arc<Records>,
}

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("models")).unwrap();
        let (ours, theirs) = (pki(folder.path(), "server"), pki(folder.path(), "client"));
        ours.trust_those_of(&theirs).unwrap();
        theirs.trust_those_of(&ours).unwrap();
        Self { folder, records: Arc::default() }
    }

    /// A server whose anonymous clients have a role.
    fn serve(&self, role: &str, mode: MessageSecurityMode, settings: NodeSetMethods) -> RunningServer {
        let mut authorization = Authorization::suggested();
        authorization.role_mut(role).unwrap().identities.push(IdentityRule::Anonymous);
        let server = Server::builder()
            .bind("127.0.0.1:0")
            .anonymous()
            .pki(&pki(self.folder.path(), "server"))
            .security(POLICY, mode)
            .authorization(authorization)
            .audit(AuditConfig::all(), Arc::clone(&self.records) as _)
            .build()
            .unwrap();
        server.nodeset_methods(settings).unwrap();
        server.spawn().unwrap()
    }

    fn administered(&self, settings: NodeSetMethods) -> RunningServer {
        self.serve("ConfigureAdmin", MessageSecurityMode::SignAndEncrypt, settings)
    }

    fn settings(&self) -> NodeSetMethods {
        NodeSetMethods::new().folder(self.models())
    }

    fn models(&self) -> std::path::PathBuf {
        self.folder.path().join("models")
    }

    /// The names of the NodeSets in the folder. There is also the list of namespaces.
    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.models()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name != "namespaces.txt");
        names.sort();
        names
    }

    async fn connect(&self, running: &RunningServer) -> Client {
        Client::builder(&running.url()).pki(&pki(self.folder.path(), "client")).connect().await.unwrap()
    }
}

async fn call(client: &Client, method: &str, input: impl Into<Variant>) -> Result<Vec<Variant>, StatusCode> {
    let object = NodeId::string(1, "NodeSets");
    let method = NodeId::string(1, format!("NodeSets/{method}"));
    client.call_variants(object, method, vec![input.into()]).await.map_err(|error| error.status())
}

async fn load(client: &Client, text: &str) -> Result<(u32, u32), StatusCode> {
    let outputs = call(client, "LoadNodeSet", ByteString::from(text.as_bytes().to_vec())).await?;
    let count = |at: usize| u32::try_from(outputs[at].clone()).unwrap();
    Ok((count(1), count(2)))
}

async fn value(client: &Client, id: u32) -> Result<f64, StatusCode> {
    let index = client.namespace_index(LINE).unwrap_or(2);
    client.read_value(NodeId::numeric(index, id)).await.map_err(|error| error.status())
}

#[tokio::test]
async fn administrators_load_replace_and_unload_while_others_are_connected() {
    let site = Site::new();
    let running = site.administered(site.settings());
    let client = site.connect(&running).await;
    assert_eq!(load(&client, &nodeset(LINE, &[(1, 1.0), (2, 2.0)], None)).await, Ok((4, 0)));
    let namespaces: Vec<String> =
        client.read_value(NodeId::string(1, "NodeSets/NamespaceUris")).await.unwrap();
    assert_eq!((namespaces, site.files()), (vec![LINE.to_owned()], vec!["urn%3Aline.xml".to_owned()]));
    let index = running.space().namespaces().iter().position(|uri| uri == LINE).unwrap() as u16;
    assert_eq!(index, 2);
    assert_eq!((value(&client, 1).await, value(&client, 2).await), (Ok(1.0), Ok(2.0)));

    // A client monitors a node that stays, and model changes.
    let mut items = client.subscribe(Duration::from_millis(20)).await.unwrap();
    items.monitor(NodeId::numeric(index, 1)).await.unwrap();
    let first = tokio::time::timeout(SOON, items.next_change()).await.unwrap().unwrap();
    assert_eq!(first.value::<f64>().unwrap(), 1.0);
    let mut events = client.subscribe(Duration::from_millis(20)).await.unwrap();
    let query = EventQuery::new().select("EventType");
    events.monitor_item(Item::events(NodeId::numeric(0, 2253), query)).await.unwrap();
    client.write(NodeId::numeric(index, 1), 7.5).await.unwrap();
    let written = tokio::time::timeout(SOON, items.next_change()).await.unwrap().unwrap();
    assert_eq!(written.value::<f64>().unwrap(), 7.5);

    // One stays, one changes, one is new.
    assert_eq!(load(&client, &nodeset(LINE, &[(1, 1.0), (2, 2.5), (3, 3.0)], None)).await, Ok((2, 1)));
    let values = (value(&client, 1).await, value(&client, 2).await, value(&client, 3).await);
    assert_eq!(values, (Ok(7.5), Ok(2.5), Ok(3.0)));
    let model_change: Variant = NodeId::numeric(0, 2133).into();
    let changed = async {
        loop {
            if let Some(Update::Event(_, fields)) = events.next().await
                && fields[0] == model_change
            {
                return;
            }
        }
    };
    tokio::time::timeout(SOON, changed).await.expect("a GeneralModelChangeEvent");
    assert!(tokio::time::timeout(Duration::from_millis(200), items.next_change()).await.is_err());
    assert_eq!(site.files().len(), 1, "it was replaced");

    // It survives a restart.
    client.disconnect().await;
    running.stop(Duration::from_millis(100));
    let running = site.administered(site.settings());
    let client = site.connect(&running).await;
    assert_eq!((value(&client, 2).await, value(&client, 3).await), (Ok(2.5), Ok(3.0)));
    assert_eq!(call(&client, "UnloadNamespace", "urn:other").await, Err(StatusCode::BAD_NOT_FOUND));
    let outputs = call(&client, "UnloadNamespace", LINE).await.unwrap();
    assert_eq!(outputs[1..3], [0u32.into(), 5u32.into()]);
    assert_eq!(value(&client, 2).await, Err(StatusCode::BAD_NODE_ID_UNKNOWN));
    assert_eq!(site.files(), [""; 0]);
    let records = site.records.0.lock().unwrap().join("\n");
    assert!(records.contains("LoadNodeSet") && records.contains("ByteString ("), "{records}");
}

/// Neither other roles nor channels without encryption.
#[tokio::test]
async fn strangers_are_refused() {
    let text = nodeset(LINE, &[(1, 1.0)], None);
    for (role, mode) in [
        ("Operator", MessageSecurityMode::SignAndEncrypt),
        ("Supervisor", MessageSecurityMode::SignAndEncrypt),
        ("ConfigureAdmin", MessageSecurityMode::Sign),
    ] {
        let site = Site::new();
        let running = site.serve(role, mode, site.settings());
        let client = site.connect(&running).await;
        let before = (running.space().node_count(), running.space().namespaces());
        let refused = [
            load(&client, &text).await.map(drop),
            call(&client, "UnloadNamespace", LINE).await.map(drop),
            call(&client, "CheckNodeSet", ByteString::from(text.clone().into_bytes())).await.map(drop),
        ];
        let expected = match mode {
            MessageSecurityMode::Sign => StatusCode::BAD_SECURITY_MODE_INSUFFICIENT,
            // They do not see the Object.
            _ => StatusCode::BAD_NODE_ID_UNKNOWN,
        };
        assert_eq!(refused, [Err(expected); 3], "{role} {mode:?}");
        let read = client.read_value::<Vec<String>>(NodeId::string(1, "NodeSets/NamespaceUris")).await;
        assert!(read.is_err(), "{role}");
        assert_eq!((running.space().node_count(), running.space().namespaces()), before);
        assert_eq!(site.files(), [""; 0]);
        assert!(site.records.0.lock().unwrap().iter().any(|record| record.contains("LoadNodeSet")));
    }
}

#[tokio::test]
async fn a_broken_file_changes_nothing() {
    let site = Site::new();
    let running = site.administered(site.settings().length_max(10_000).reserve(["urn:later"]));
    let client = site.connect(&running).await;
    load(&client, &nodeset(LINE, &[(1, 1.0)], None)).await.unwrap();
    let before = (running.space().node_count(), site.files());
    let namespaces = running.space().namespaces();
    let own = namespaces[1].clone();
    let good = nodeset(LINE, &[(1, 1.0), (2, 2.0)], None);
    let huge: Vec<(u32, f64)> = (1000..1100).map(|number| (number, 1.0)).collect();
    let zero = "ModelUri=\"http://opcfoundation.org/UA/";
    let wrong = [
        ("not XML".to_owned(), StatusCode::BAD_CONFIGURATION_ERROR, "NodeSet:1"),
        (good.replace("</UANodeSet>", ""), StatusCode::BAD_CONFIGURATION_ERROR, "NodeSet:"),
        (good.replace("<Double", "<Dooble"), StatusCode::BAD_CONFIGURATION_ERROR, "NodeSet:"),
        (good.replace("i=2\"", "i=1\""), StatusCode::BAD_CONFIGURATION_ERROR, "NodeSet:"),
        (nodeset("urn:other", &[], Some("urn:missing")), StatusCode::BAD_CONFIGURATION_ERROR, "urn:missing"),
        (good.replace("ModelUri=\"urn:line", zero), StatusCode::BAD_CONFIGURATION_ERROR, "namespace 0"),
        (nodeset(&own, &[], None), StatusCode::BAD_CONFIGURATION_ERROR, "is used by the server"),
        (nodeset("urn:later", &[], None), StatusCode::BAD_CONFIGURATION_ERROR, "is used by the server"),
        (
            good.replace("</Models>", "<Model ModelUri=\"urn:other\"/></Models>"),
            StatusCode::BAD_CONFIGURATION_ERROR,
            "not in <NamespaceUris>",
        ),
        (
            nodeset("urn:a&#10;b", &[], None),
            StatusCode::BAD_CONFIGURATION_ERROR,
            "without control characters",
        ),
        (nodeset("", &[], None), StatusCode::BAD_CONFIGURATION_ERROR, "1 to 1024 bytes"),
        (
            nodeset(&format!("urn:{}", "x".repeat(2000)), &[], None),
            StatusCode::BAD_CONFIGURATION_ERROR,
            "1 to 1024 bytes",
        ),
        (nodeset(LINE, &huge, None), StatusCode::BAD_REQUEST_TOO_LARGE, "at most 10000"),
        (nodeset(&format!("urn:{}", "x".repeat(300)), &[], None), StatusCode::BAD_OUT_OF_RANGE, "too long"),
    ];
    for (text, status, reason) in &wrong {
        assert_eq!(load(&client, text).await, Err(*status), "{reason}");
        let bytes = ByteString::from(text.as_bytes().to_vec());
        let told = call(&client, "CheckNodeSet", bytes).await.unwrap();
        assert!(told[0].to_string().contains(reason), "{reason}: {told:?}");
        assert_eq!((running.space().node_count(), site.files()), before, "{reason}");
        assert_eq!(running.space().namespaces(), namespaces, "{reason}");
        assert_eq!(value(&client, 1).await, Ok(1.0), "{reason}");
    }
    let no_text = call(&client, "LoadNodeSet", ByteString::from(vec![0xff, 0xfe])).await;
    assert_eq!(no_text.map(drop), Err(StatusCode::BAD_DECODING_ERROR));
    for text in [good, nodeset("urn:checked", &[], None)] {
        let told = call(&client, "CheckNodeSet", ByteString::from(text.into_bytes())).await.unwrap();
        assert_eq!(told, [Variant::from("")]);
    }
    assert_eq!((running.space().node_count(), site.files()), before, "a check changes nothing");
    assert_eq!(running.space().namespaces(), namespaces);
    // A folder that cannot be written to.
    std::fs::remove_dir_all(site.models()).unwrap();
    let refused = load(&client, &nodeset(LINE, &[(3, 3.0)], None)).await;
    assert_eq!(refused, Err(StatusCode::BAD_RESOURCE_UNAVAILABLE));
    assert_eq!((value(&client, 1).await, running.space().node_count()), (Ok(1.0), before.0));
}

#[tokio::test]
async fn models_that_others_need_stay() {
    let site = Site::new();
    let keep = |removal: &NodeSetRemoval<'_>| match removal.has_namespace("urn:used") {
        true => Err("it is used".to_owned()),
        false => Ok(()),
    };
    let running = site.administered(NodeSetMethods::new().keep(keep));
    let client = site.connect(&running).await;
    load(&client, &nodeset(LINE, &[(1, 1.0)], None)).await.unwrap();
    load(&client, &nodeset("urn:above", &[(1, 2.0)], Some(LINE))).await.unwrap();
    load(&client, &nodeset("urn:used", &[(1, 3.0)], None)).await.unwrap();
    let needed = call(&client, "UnloadNamespace", LINE).await.map(drop);
    assert_eq!(needed, Err(StatusCode::BAD_CONFIGURATION_ERROR), "another model requires it");
    let used = call(&client, "UnloadNamespace", "urn:used").await.map(drop);
    assert_eq!(used, Err(StatusCode::BAD_INVALID_STATE), "the application refers to it");
    assert_eq!(value(&client, 1).await, Ok(1.0));
    call(&client, "UnloadNamespace", "urn:above").await.unwrap();
    call(&client, "UnloadNamespace", LINE).await.unwrap();
    assert_eq!(value(&client, 1).await, Err(StatusCode::BAD_NODE_ID_UNKNOWN));
    // Each is limited, and so are all together.
    let length = nodeset("urn:0", &[], None).len();
    let limited = site.administered(NodeSetMethods::new().length_max(length));
    let client = site.connect(&limited).await;
    let mut refused = None;
    for number in 0..5 {
        if let Err(status) = load(&client, &nodeset(&format!("urn:{number}"), &[], None)).await {
            refused = refused.or(Some((number, status)));
        }
    }
    assert_eq!(refused, Some((4, StatusCode::BAD_RESOURCE_UNAVAILABLE)));
}

/// A NodeSet with one ObjectType. `references` are its HasSubtype References: whether forward, and the other type.
fn typed(uri: &str, others: &[&str], references: &[(bool, &str)]) -> String {
    let uris = others.iter().map(|uri| format!("<Uri>{uri}</Uri>")).collect::<String>();
    let required =
        others.iter().map(|uri| format!("<RequiredModel ModelUri=\"{uri}\"/>")).collect::<String>();
    let references = references
        .iter()
        .map(|(is_forward, id)| {
            format!("<Reference ReferenceType=\"i=45\" IsForward=\"{is_forward}\">{id}</Reference>")
        })
        .collect::<String>();
    format!(
        "<UANodeSet xmlns=\"http://opcfoundation.org/UA/2011/03/UANodeSet.xsd\">\
         <NamespaceUris><Uri>{uri}</Uri>{uris}</NamespaceUris><Models><Model ModelUri=\"{uri}\">{required}</Model></Models>\
         <UAObjectType NodeId=\"ns=1;i=1\" BrowseName=\"1:Type\"><References>{references}</References></UAObjectType>\
         </UANodeSet>"
    )
}

/// Clients and filters follow supertypes. The types of the server are part of the circle, or those of another NodeSet.
#[tokio::test]
async fn types_derive_from_one_type_and_not_from_themselves() {
    let site = Site::new();
    let running = site.administered(site.settings());
    let client = site.connect(&running).await;
    let refused =
        |told: &[Variant], part: &str| assert!(told[0].to_string().contains(part), "{part}: {told:?}");
    for (references, part) in [
        (&[(false, "i=61"), (true, "i=58")][..], "i=58 would derive"),
        (&[(false, "i=58"), (true, "i=61")], "i=61 would derive"),
        (&[(false, "i=58"), (false, "i=61")], "ns=2;i=1 would derive"),
        (&[(false, "ns=1;i=1")], "derives from itself"),
    ] {
        let text = typed("urn:a", &[], references);
        let told = call(&client, "CheckNodeSet", ByteString::from(text.as_bytes().to_vec())).await.unwrap();
        refused(&told, part);
        assert_eq!(load(&client, &text).await, Err(StatusCode::BAD_CONFIGURATION_ERROR), "{part}");
    }
    load(&client, &typed("urn:a", &[], &[(false, "i=58"), (false, "i=58")])).await.unwrap();
    load(&client, &typed("urn:b", &["urn:a"], &[(false, "ns=2;i=1")])).await.unwrap();
    let circle = typed("urn:a", &[], &[(false, "ns=2;i=1")])
        .replace("<Uri>urn:a</Uri>", "<Uri>urn:a</Uri><Uri>urn:b</Uri>");
    let told = call(&client, "CheckNodeSet", ByteString::from(circle.into_bytes())).await.unwrap();
    refused(&told, "derives from itself");
}

/// The response to a load has some warnings, however many there are.
#[tokio::test]
async fn warnings_fit_into_the_response() {
    let site = Site::new();
    let running = site.administered(site.settings());
    let client = site.connect(&running).await;
    let missing =
        (0..300).map(|at| format!("<Reference ReferenceType=\"i=35\">ns=1;i={}</Reference>", 5000 + at));
    let text = nodeset(LINE, &[], None).replacen(
        "</References>",
        &format!("{}</References>", missing.collect::<String>()),
        1,
    );
    let outputs = call(&client, "LoadNodeSet", ByteString::from(text.into_bytes())).await.unwrap();
    let Variant::Array(warnings) = &outputs[3] else { panic!("{:?}", outputs[3]) };
    assert_eq!(warnings.values.len(), 101);
    assert!(outputs[3].to_string().contains("and 200 more"), "{}", outputs[3]);
}

/// What is kept for ever, and what each new NodeSet is compared with, is limited. The server starts again with all that
/// it has accepted.
#[tokio::test]
async fn namespaces_and_models_of_all_are_limited_together() {
    let site = Site::new();
    let running = site.administered(site.settings());
    let client = site.connect(&running).await;
    let unused = |file: u32| {
        let uris = (0..99).map(|number| format!("<Uri>urn:{file}:{number}:{}</Uri>", "x".repeat(1000)));
        uris.collect::<String>()
    };
    let models = |file: u32, element: &dyn Fn(String) -> String| {
        (0..98).map(|number| element(format!("m:{file}:{number}"))).collect::<String>()
    };
    let (mut long, mut many) = (0, 0);
    for number in 0..12 {
        let text = nodeset(&format!("urn:long:{number}"), &[(number, 1.0)], None);
        let loaded =
            load(&client, &text.replace("</NamespaceUris>", &format!("{}</NamespaceUris>", unused(number))))
                .await;
        long += u32::from(loaded.is_ok());
        assert!(loaded.is_ok() || loaded == Err(StatusCode::BAD_RESOURCE_UNAVAILABLE), "{loaded:?}");
    }
    for number in 0..12 {
        let uris = models(number, &|uri| format!("<Uri>{uri}</Uri>"));
        let many_models = models(number, &|uri| format!("<Model ModelUri=\"{uri}\"/>"));
        let text = nodeset(&format!("urn:many:{number}"), &[(number, 1.0)], None);
        let text = text.replace("</NamespaceUris>", &format!("{uris}</NamespaceUris>"));
        let loaded = load(&client, &text.replace("</Models>", &format!("{many_models}</Models>"))).await;
        many += u32::from(loaded.is_ok());
        assert!(loaded.is_ok() || loaded == Err(StatusCode::BAD_RESOURCE_UNAVAILABLE), "{loaded:?}");
    }
    assert_eq!((long, many), (10, 10));
    let array = client.read_value::<Vec<String>>(NodeId::numeric(0, 2255)).await.unwrap();
    assert!(array.len() > 1000, "{}", array.len());
    let files = site.files();
    drop((client, running));
    let running = site.administered(site.settings());
    assert_eq!((running.space().namespaces().len(), site.files()), (array.len(), files));
}

/// Files that differ from those of tools: the first one is loaded before. Whether the second one is loaded or refused, the
/// server starts again with what it has.
#[tokio::test]
async fn a_server_starts_again_with_all_that_it_has_loaded() {
    let node = |attributes: &str| format!("<UAObject BrowseName=\"1:X\" {attributes}/></UANodeSet>");
    let with = |more: &str| nodeset(LINE, &[(1, 1.0)], None).replace("</UANodeSet>", more);
    let plain = with("</UANodeSet>");
    let point = "<UAVariable NodeId=\"ns=1;i=9\" BrowseName=\"1:P\" DataType=\"i=22\"><References><Reference \
                 ReferenceType=\"i=40\">i=63</Reference></References><Value><ExtensionObject><TypeId><Identifier>ns=1;i=21\
                 </Identifier></TypeId><Body><Point><X>1</X></Point></Body></ExtensionObject></Value></UAVariable></UANodeSet>";
    let structure = "<UADataType NodeId=\"ns=1;i=20\" BrowseName=\"1:Point\"><References><Reference \
                     ReferenceType=\"i=45\" IsForward=\"false\">i=22</Reference><Reference ReferenceType=\"i=38\">ns=1;i=21\
                     </Reference></References><Definition Name=\"1:Point\"><Field Name=\"X\" DataType=\"i=6\"/></Definition>\
                     </UADataType><UAObject NodeId=\"ns=1;i=21\" BrowseName=\"Default Binary\"><References><Reference \
                     ReferenceType=\"i=40\">i=76</Reference></References></UAObject>";
    let twice = "<Uri>urn:line</Uri><Uri>http://opcfoundation.org/UA/</Uri>";
    let cases = [
        (plain.clone(), with(&node("NodeId=\"i=0\"")), Err(())),
        (plain.clone(), with(&node("NodeId=\"s=\"")), Err(())),
        (plain.clone(), with(&node("NodeId=\"ns=2;i=0\"")).replace("<Uri>urn:line</Uri>", twice), Err(())),
        (plain.clone(), with(&node("NodeId=\"ns=1;i=0\"")), Ok(())),
        (plain.clone(), with(&node("NodeId=\"i=90001\"")), Ok(())),
        (plain.clone(), with(&node("NodeId=\"ns=1;i=9\" RolePermissions=\"1\"")), Ok(())),
        (with(&format!("{structure}{point}")), with(&format!("{structure}{point}")), Ok(())),
        // The type is not in the file any more.
        (with(&format!("{structure}</UANodeSet>")), with(point), Err(())),
        (
            plain.clone(),
            plain.replace("</References>", "<Reference ReferenceType=\"i=61\">i=85</Reference></References>"),
            Ok(()),
        ),
        (plain.clone(), format!("\u{feff}{plain}"), Ok(())),
    ];
    for (at, (first, second, expected)) in cases.into_iter().enumerate() {
        let site = Site::new();
        let running = site.administered(site.settings());
        let client = site.connect(&running).await;
        load(&client, &first).await.unwrap();
        let loaded = load(&client, &second).await;
        assert_eq!(loaded.map(drop).map_err(drop), expected, "{at}: {loaded:?}");
        let count = running.space().node_count();
        client.disconnect().await;
        running.stop(Duration::from_millis(100));
        let running = site.administered(site.settings());
        let client = site.connect(&running).await;
        assert_eq!(running.space().node_count(), count, "{at}");
        assert_eq!(value(&client, 1).await, Ok(1.0), "{at}");
    }
}

/// Applications may have to read a file to know what they need.
#[tokio::test]
async fn an_application_is_asked_once_with_all_that_a_change_removes() {
    let site = Site::new();
    let asked = Arc::<Mutex<Vec<(Vec<String>, Vec<String>)>>>::default();
    let log = Arc::clone(&asked);
    let running = site.administered(NodeSetMethods::new().keep(move |removal| {
        let namespaces = removal.namespaces().iter().map(|uri| (*uri).to_owned()).collect();
        log.lock().unwrap().push((namespaces, removal.nodes().map(ToString::to_string).collect()));
        if removal.has_node("nsu=urn:line;i=3") { Err("i=3 is used".to_owned()) } else { Ok(()) }
    }));
    let client = site.connect(&running).await;
    let taken = || core::mem::take(&mut *asked.lock().unwrap());
    load(&client, &nodeset(LINE, &[(1, 1.0), (2, 2.0), (3, 3.0)], None)).await.unwrap();
    assert_eq!(taken(), []);
    let newer = nodeset(LINE, &[(3, 3.0)], None);
    let told = call(&client, "CheckNodeSet", ByteString::from(newer.as_bytes().to_vec())).await.unwrap();
    assert_eq!(told, [Variant::from("")]);
    load(&client, &newer).await.unwrap();
    let index = running.space().namespace_index(LINE).unwrap();
    let ids = |ids: &[u32]| ids.iter().map(|id| format!("ns={index};i={id}")).collect::<Vec<_>>();
    let removed = (Vec::new(), ids(&[1, 2]));
    assert_eq!(taken(), [removed.clone(), removed]);
    let refused = Err(StatusCode::BAD_INVALID_STATE);
    // A node of another NodeClass is another node.
    let object = "<UAObject NodeId=\"ns=1;i=3\" BrowseName=\"1:V3\"><References><Reference ReferenceType=\"i=47\" \
                  IsForward=\"false\">ns=1;i=100</Reference></References></UAObject></UANodeSet>";
    let other = nodeset(LINE, &[], None).replace("</UANodeSet>", object);
    assert_eq!(load(&client, &other).await.map(drop), refused);
    assert_eq!(taken(), [(Vec::new(), ids(&[3]))]);
    assert_eq!(load(&client, &nodeset(LINE, &[], None)).await.map(drop), refused);
    assert_eq!(call(&client, "UnloadNamespace", LINE).await.map(drop), refused);
    assert_eq!(taken(), [(Vec::new(), ids(&[3])), (vec![LINE.to_owned()], ids(&[3, 100, 101]))]);
}

/// As after a crash between writing the new file and deleting the old one.
#[tokio::test]
async fn of_two_files_with_a_model_the_newer_one_is_used() {
    let site = Site::new();
    std::fs::write(site.models().join("line.xml"), nodeset(LINE, &[(1, 1.0)], None)).unwrap();
    let running = site.administered(site.settings());
    let client = site.connect(&running).await;
    assert_eq!(value(&client, 1).await, Ok(1.0));
    load(&client, &nodeset(LINE, &[(1, 2.0)], None)).await.unwrap();
    assert_eq!(site.files(), ["urn%3Aline.xml"]);
    client.disconnect().await;
    running.stop(Duration::from_millis(100));
    std::fs::write(site.models().join("line.xml"), nodeset(LINE, &[(1, 1.0)], None)).unwrap();
    let running = site.administered(site.settings());
    let client = site.connect(&running).await;
    assert_eq!(value(&client, 1).await, Ok(2.0));
    assert_eq!(site.files().len(), 2, "it is not for the server to delete it");
}
