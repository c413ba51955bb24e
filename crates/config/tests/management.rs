//! Clients change users and roles with the standard methods over encrypted channels.

#![allow(clippy::unwrap_used)] // a test fails by panicking

use core::time::Duration;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use taktwerk::pki::Pki;
use taktwerk::value::Struct;
use taktwerk::{Client, MessageSecurityMode, RunningServer, SecurityPolicy, Server, StatusCode};
use taktwerk_config::management::Management;
use taktwerk_config::users::{PasswordVerifier, UserStore, Users};
use taktwerk_pki::{CertificateSettings, NewKey};
use taktwerk_schema::ids::{method_ids, object_ids, variable_ids};
use taktwerk_schema::{EndpointType, IdentityCriteriaType, IdentityMappingRuleType, UserManagementDataType};
use taktwerk_server::Authorization;
use taktwerk_types::{DataValue, ExtensionObject, NodeId, QualifiedName, UaString, Variant};

const POLICY: SecurityPolicy = SecurityPolicy::ECC_nistP256_AesGcm;
const PASSWORD: &str = "canary-one";

struct Installation {
    folder: tempfile::TempDir,
    server: RunningServer,
    management: Arc<Management>,
    client_pki: Pki,
}

fn pki(folder: &Path, name: &str) -> Pki {
    let settings = CertificateSettings::new(name, &format!("urn:test:{name}"));
    let pki = Pki::in_folder(folder.join(name)).settings(settings).create_missing([NewKey::NistP256]);
    pki.open().unwrap()
}

impl Installation {
    fn new() -> Self {
        Self::with(Authorization::suggested())
    }

    fn with(base: Authorization) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut users = Users::default();
        users.add("root", PASSWORD.as_bytes(), vec!["SecurityAdmin".into()]).unwrap();
        users.add("olaf", PASSWORD.as_bytes(), vec!["Observer".into()]).unwrap();
        users.save(&folder.path().join("users.toml")).unwrap();
        Self::start(folder, base)
    }

    fn start(folder: tempfile::TempDir, base: Authorization) -> Self {
        let (ours, theirs) = (pki(folder.path(), "server"), pki(folder.path(), "client"));
        ours.trust_those_of(&theirs).unwrap();
        theirs.trust_those_of(&ours).unwrap();
        let store = UserStore::open(&folder.path().join("users.toml")).unwrap();
        let management = Management::new(Arc::clone(&store), base);
        let server = Server::builder()
            .bind("127.0.0.1:0")
            .pki(&ours)
            .security(POLICY, MessageSecurityMode::SignAndEncrypt)
            .security(POLICY, MessageSecurityMode::Sign)
            .users(PasswordVerifier::new(store))
            .authorization(management.authorization().0)
            .build()
            .unwrap();
        management.install(server.space()).unwrap();
        let server = server.spawn().unwrap();
        management.start(server.shared());
        Self { folder, server, management, client_pki: theirs }
    }

    /// Stops the server and starts another one with the same files.
    fn restart(self) -> Self {
        self.server.stop(Duration::from_secs(1));
        Self::start(self.folder, Authorization::suggested())
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("users.toml")
    }

    async fn log_on(&self, user: &str, password: &str) -> Result<Client, StatusCode> {
        let client = Client::builder(&self.server.url()).pki(&self.client_pki).user(user, password);
        client.connect().await.map_err(|error| error.status())
    }
}

const fn ns0(id: u32) -> NodeId {
    NodeId::numeric(0, id)
}

async fn call(
    client: &Client,
    object: NodeId,
    method: NodeId,
    inputs: Vec<Variant>,
) -> Result<Vec<Variant>, StatusCode> {
    client.call_variants(object, method, inputs).await.map_err(|error| error.status())
}

async fn user_method(client: &Client, method: u32, inputs: Vec<Variant>) -> Result<(), StatusCode> {
    call(client, ns0(object_ids::USER_MANAGEMENT), ns0(method), inputs).await.map(drop)
}

fn add_user(name: &str, password: &str, mask: u32) -> Vec<Variant> {
    vec![name.into(), password.into(), mask.into(), "a note".into()]
}

fn rule(criteria_type: IdentityCriteriaType, criteria: &str) -> Variant {
    ExtensionObject::new(&IdentityMappingRuleType { criteria_type, criteria: criteria.into() }).into()
}

const ADD_IDENTITY: u32 = method_ids::WELL_KNOWN_ROLE_OPERATOR_ADD_IDENTITY;
const REMOVE_IDENTITY: u32 = method_ids::WELL_KNOWN_ROLE_OPERATOR_REMOVE_IDENTITY;
const OPERATOR: NodeId = ns0(object_ids::WELL_KNOWN_ROLE_OPERATOR);

#[tokio::test]
async fn users_are_added_changed_and_removed() {
    let installation = Installation::new();
    let root = installation.log_on("root", PASSWORD).await.unwrap();
    let add = method_ids::USER_MANAGEMENT_ADD_USER;
    user_method(&root, add, add_user("otto", "first password", 0)).await.unwrap();
    let refused = [
        (add_user("otto", "first password", 0), StatusCode::BAD_ALREADY_EXISTS),
        (add_user("anna", "short", 0), StatusCode::BAD_OUT_OF_RANGE),
        (add_user("", "first password", 0), StatusCode::BAD_INVALID_ARGUMENT),
        (add_user("anna", "first password", 16), StatusCode::BAD_NOT_SUPPORTED),
        (add_user("anna", "first password", 12), StatusCode::BAD_CONFIGURATION_ERROR),
    ];
    for (inputs, status) in refused {
        assert_eq!(user_method(&root, add, inputs.clone()).await, Err(status), "{inputs:?}");
    }
    let otto = installation.log_on("otto", "first password").await.unwrap();
    assert_eq!(
        user_method(&otto, add, add_user("anna", "first password", 0)).await,
        Err(StatusCode::BAD_USER_ACCESS_DENIED)
    );
    let users: Vec<Struct<UserManagementDataType>> =
        root.read_value(ns0(variable_ids::USER_MANAGEMENT_USERS)).await.unwrap();
    let names: Vec<&str> = users.iter().map(|user| user.0.user_name.as_str()).collect();
    assert_eq!(names, ["root", "olaf", "otto"]);
    assert!(otto.read_value::<Variant>(ns0(variable_ids::USER_MANAGEMENT_USERS)).await.is_err());

    // A disabled user loses the session and cannot log on.
    let modify = method_ids::USER_MANAGEMENT_MODIFY_USER;
    let modified = |name: &str, mask: u32| -> Vec<Variant> {
        vec![name.into(), false.into(), "".into(), true.into(), mask.into(), false.into(), "".into()]
    };
    assert_eq!(
        user_method(&root, modify, modified("root", 2)).await,
        Err(StatusCode::BAD_INVALID_SELF_REFERENCE)
    );
    assert_eq!(user_method(&root, modify, modified("anna", 2)).await, Err(StatusCode::BAD_NOT_FOUND));
    user_method(&root, modify, modified("otto", 2)).await.unwrap();
    while otto.read_value::<i32>(ns0(variable_ids::SERVER_SERVER_STATUS_STATE)).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(installation.log_on("otto", "first password").await.is_err());
    user_method(&root, modify, modified("otto", 1)).await.unwrap();
    installation.log_on("otto", "first password").await.unwrap();

    let remove = method_ids::USER_MANAGEMENT_REMOVE_USER;
    let refused = [
        ("root", StatusCode::BAD_INVALID_SELF_REFERENCE),
        ("otto", StatusCode::BAD_NOT_SUPPORTED),
        ("anna", StatusCode::BAD_NOT_FOUND),
    ];
    for (name, status) in refused {
        assert_eq!(user_method(&root, remove, vec![name.into()]).await, Err(status), "{name}");
    }
    user_method(&root, modify, modified("otto", 0)).await.unwrap();
    user_method(&root, remove, vec!["otto".into()]).await.unwrap();
    assert!(installation.log_on("otto", "first password").await.is_err());
    // All changes are in the file, and changes by other programs are not overwritten.
    let mut users = Users::load(&installation.file()).unwrap();
    users.add("cli", b"from elsewhere", Vec::new()).unwrap();
    users.save(&installation.file()).unwrap();
    user_method(&root, add, add_user("last", "first password", 4)).await.unwrap();
    let kept = Users::load(&installation.file()).unwrap();
    let names: Vec<&str> = kept.iter().map(|user| user.name.as_str()).collect();
    assert_eq!(names, ["root", "olaf", "cli", "last"]);
    let last = kept.get("last").unwrap();
    assert!(last.no_change_by_user && !last.disabled && last.description == "a note");
}

#[tokio::test]
async fn users_change_their_own_passwords() {
    let installation = Installation::new();
    let change = method_ids::USER_MANAGEMENT_CHANGE_PASSWORD;
    let olaf = installation.log_on("olaf", PASSWORD).await.unwrap();
    let inputs = |old: &str, new: &str| -> Vec<Variant> { vec![old.into(), new.into()] };
    for (old, new, status) in [
        ("wrong password", "second password", StatusCode::BAD_IDENTITY_TOKEN_INVALID),
        (PASSWORD, PASSWORD, StatusCode::BAD_ALREADY_EXISTS),
        (PASSWORD, "short", StatusCode::BAD_OUT_OF_RANGE),
    ] {
        assert_eq!(user_method(&olaf, change, inputs(old, new)).await, Err(status), "{new}");
    }
    user_method(&olaf, change, inputs(PASSWORD, "second password")).await.unwrap();
    assert!(installation.log_on("olaf", PASSWORD).await.is_err());
    let again = installation.log_on("olaf", "second password").await.unwrap();
    // Sessions with the old password are closed.
    while olaf.read_value::<i32>(ns0(variable_ids::SERVER_SERVER_STATUS_STATE)).await.is_ok() {
        installation.management.tick();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    again.read_value::<i32>(ns0(variable_ids::SERVER_SERVER_STATUS_STATE)).await.unwrap();
    // An open session does not allow guessing passwords.
    let mut statuses = Vec::new();
    for guess in 0..7 {
        statuses.push(user_method(&again, change, inputs(&format!("guess {guess}"), "third password")).await);
    }
    assert_eq!(statuses[0], Err(StatusCode::BAD_IDENTITY_TOKEN_INVALID));
    assert_eq!(statuses[6], Err(StatusCode::BAD_USER_ACCESS_DENIED));
    let text = std::fs::read_to_string(installation.file()).unwrap();
    assert!(!text.contains("second password"));
}

#[tokio::test]
async fn role_changes_affect_open_sessions() {
    let installation = Installation::new();
    let root = installation.log_on("root", PASSWORD).await.unwrap();
    let olaf = installation.log_on("olaf", PASSWORD).await.unwrap();
    let admin = ns0(object_ids::WELL_KNOWN_ROLE_SECURITY_ADMIN);
    let admin_add = ns0(method_ids::WELL_KNOWN_ROLE_SECURITY_ADMIN_ADD_IDENTITY);
    let user_name = |name: &str| vec![rule(IdentityCriteriaType::USER_NAME, name)];
    // Only administrators are allowed.
    let refused = call(&olaf, admin.clone(), admin_add.clone(), user_name("olaf")).await;
    assert_eq!(refused, Err(StatusCode::BAD_USER_ACCESS_DENIED));
    call(&root, admin.clone(), admin_add.clone(), user_name("olaf")).await.unwrap();
    let again = call(&root, admin.clone(), admin_add.clone(), user_name("olaf")).await;
    assert_eq!(again, Err(StatusCode::BAD_ALREADY_EXISTS));
    let anonymous = vec![rule(IdentityCriteriaType::ANONYMOUS, "")];
    let refused = call(&root, admin.clone(), admin_add.clone(), anonymous).await;
    assert_eq!(refused, Err(StatusCode::BAD_REQUEST_NOT_ALLOWED));
    // The existing session has the role: the user can remove it.
    let admin_remove = ns0(method_ids::WELL_KNOWN_ROLE_SECURITY_ADMIN_REMOVE_IDENTITY);
    call(&olaf, admin.clone(), admin_remove.clone(), user_name("olaf")).await.unwrap();
    let refused = call(&olaf, admin.clone(), admin_add.clone(), user_name("olaf")).await;
    assert_eq!(refused, Err(StatusCode::BAD_USER_ACCESS_DENIED));
    let refused = call(&root, admin.clone(), admin_remove.clone(), user_name("olaf")).await;
    assert_eq!(refused, Err(StatusCode::BAD_NOT_FOUND));
    // The last administrator cannot be removed.
    let refused = call(&root, admin, admin_remove, user_name("root")).await;
    assert_eq!(refused, Err(StatusCode::BAD_REQUEST_NOT_ALLOWED));

    // For a user of the file it is stored in the user's roles, for others in the role.
    call(&root, OPERATOR, ns0(ADD_IDENTITY), user_name("olaf")).await.unwrap();
    call(&root, OPERATOR, ns0(ADD_IDENTITY), user_name("stranger")).await.unwrap();
    let group = rule(IdentityCriteriaType::GROUP_ID, "shift");
    call(&root, OPERATOR, ns0(ADD_IDENTITY), vec![group.clone()]).await.unwrap();
    let uri = || vec![Variant::from("urn:test:other")];
    let add_application = ns0(method_ids::WELL_KNOWN_ROLE_OPERATOR_ADD_APPLICATION);
    call(&root, OPERATOR, add_application, uri()).await.unwrap();
    let endpoint = EndpointType { security_policy_uri: POLICY.uri().into(), ..EndpointType::default() };
    let endpoint = vec![Variant::from(ExtensionObject::new(&endpoint))];
    let add_endpoint = ns0(method_ids::WELL_KNOWN_ROLE_OPERATOR_ADD_ENDPOINT);
    call(&root, OPERATOR, add_endpoint, endpoint.clone()).await.unwrap();
    let wrong = EndpointType { security_policy_uri: "urn:none".into(), ..EndpointType::default() };
    let wrong = vec![Variant::from(ExtensionObject::new(&wrong))];
    let remove_endpoint = ns0(method_ids::WELL_KNOWN_ROLE_OPERATOR_REMOVE_ENDPOINT);
    let refused = call(&root, OPERATOR, remove_endpoint.clone(), wrong).await;
    assert_eq!(refused, Err(StatusCode::BAD_INVALID_ARGUMENT));
    let kept = Users::load(&installation.file()).unwrap();
    assert_eq!(kept.get("olaf").unwrap().roles, ["Observer", "Operator"]);
    assert_eq!((kept.roles[0].name.as_str(), kept.roles[0].identities.len()), ("Operator", 2));
    assert_eq!(kept.roles[0].applications, ["urn:test:other"]);

    // Everything is restored and shown after a restart.
    let installation = installation.restart();
    let root = installation.log_on("root", PASSWORD).await.unwrap();
    let identities = ns0(variable_ids::WELL_KNOWN_ROLE_OPERATOR_IDENTITIES);
    let shown: Vec<Struct<IdentityMappingRuleType>> = root.read_value(identities).await.unwrap();
    let shown: Vec<&str> = shown.iter().map(|rule| rule.0.criteria.as_str()).collect();
    assert_eq!(shown, ["stranger", "shift", "olaf"]);
    call(&root, OPERATOR, ns0(REMOVE_IDENTITY), vec![group.clone()]).await.unwrap();
    assert_eq!(
        call(&root, OPERATOR, ns0(REMOVE_IDENTITY), vec![group]).await,
        Err(StatusCode::BAD_NOT_FOUND)
    );
    call(&root, OPERATOR, ns0(REMOVE_IDENTITY), user_name("olaf")).await.unwrap();
    call(&root, OPERATOR, remove_endpoint, endpoint).await.unwrap();
    let remove_application = ns0(method_ids::WELL_KNOWN_ROLE_OPERATOR_REMOVE_APPLICATION);
    call(&root, OPERATOR, remove_application.clone(), uri()).await.unwrap();
    let refused = call(&root, OPERATOR, remove_application, uri()).await;
    assert_eq!(refused, Err(StatusCode::BAD_NOT_FOUND));
    let kept = Users::load(&installation.file()).unwrap();
    assert_eq!(kept.get("olaf").unwrap().roles, ["Observer"]);
    assert!(kept.roles[0].endpoints.is_empty() && kept.roles[0].applications.is_empty());
}

#[tokio::test]
async fn roles_are_added_and_removed() {
    let installation = Installation::new();
    let root = installation.log_on("root", PASSWORD).await.unwrap();
    let set = ns0(object_ids::SERVER_SERVER_CAPABILITIES_ROLE_SET);
    let add = ns0(method_ids::SERVER_SERVER_CAPABILITIES_ROLE_SET_ADD_ROLE);
    let remove = ns0(method_ids::SERVER_SERVER_CAPABILITIES_ROLE_SET_REMOVE_ROLE);
    let inputs = |name: &str, namespace: &str| -> Vec<Variant> { vec![name.into(), namespace.into()] };
    let added = call(&root, set.clone(), add.clone(), inputs("Cleaner", "")).await.unwrap();
    let role = NodeId::try_from(added.into_iter().next().unwrap()).unwrap();
    for (name, namespace, status) in [
        ("Cleaner", "", StatusCode::BAD_ALREADY_EXISTS),
        ("Operator", "", StatusCode::BAD_ALREADY_EXISTS),
        ("", "", StatusCode::BAD_INVALID_ARGUMENT),
        ("Painter", "urn:unknown", StatusCode::BAD_INVALID_ARGUMENT),
    ] {
        let refused = call(&root, set.clone(), add.clone(), inputs(name, namespace)).await;
        assert_eq!(refused, Err(status), "{name} {namespace}");
    }
    let space = installation.server.space();
    let member = |name: &str| space.child(&role, &QualifiedName::new(0, name)).unwrap();
    let olaf = vec![rule(IdentityCriteriaType::USER_NAME, "olaf")];
    call(&root, role.clone(), member("AddIdentity"), olaf).await.unwrap();
    let excludes: bool = root.read_value(member("ApplicationsExclude")).await.unwrap();
    assert!(excludes, "Part 18 §4.2.2");
    let shown: Vec<Struct<IdentityMappingRuleType>> = root.read_value(member("Identities")).await.unwrap();
    assert_eq!(shown[0].0.criteria, UaString::from("olaf"));
    // Users without the permission do not see it.
    let olaf = installation.log_on("olaf", PASSWORD).await.unwrap();
    assert!(olaf.read_value::<Variant>(member("Identities")).await.is_err());

    let installation = installation.restart();
    let root = installation.log_on("root", PASSWORD).await.unwrap();
    let shared = installation.server.shared();
    assert!(shared.authorization().role("Cleaner").is_some());
    let space = installation.server.space();
    assert!(space.contains(&role));
    let before = space.node_count();
    let refused = call(&root, set.clone(), remove.clone(), vec![OPERATOR.into()]).await;
    assert_eq!(refused, Err(StatusCode::BAD_REQUEST_NOT_ALLOWED));
    call(&root, set.clone(), remove.clone(), vec![role.clone().into()]).await.unwrap();
    let refused = call(&root, set, remove, vec![role.clone().into()]).await;
    assert_eq!(refused, Err(StatusCode::BAD_NODE_ID_UNKNOWN));
    assert!(!space.contains(&role) && shared.authorization().role("Cleaner").is_none());
    // The object, six Properties, and six Methods with one argument each.
    assert_eq!(before - space.node_count(), 1 + 6 + 6 + 6);
    let kept = Users::load(&installation.file()).unwrap();
    assert!(kept.roles.is_empty() && kept.get("olaf").unwrap().roles == ["Observer"]);
}

#[tokio::test]
async fn unencrypted_channels_are_refused() {
    let installation = Installation::new();
    let client = Client::builder(&installation.server.url()).pki(&installation.client_pki);
    let signed = taktwerk::client::Security::Exactly(POLICY, MessageSecurityMode::Sign);
    let root = client.security(signed).user("root", PASSWORD).connect().await.unwrap();
    let refused =
        user_method(&root, method_ids::USER_MANAGEMENT_ADD_USER, add_user("a", "password 1", 0)).await;
    assert_eq!(refused, Err(StatusCode::BAD_SECURITY_MODE_INSUFFICIENT));
    let change = vec![PASSWORD.into(), "another password".into()];
    let refused = user_method(&root, method_ids::USER_MANAGEMENT_CHANGE_PASSWORD, change).await;
    assert_eq!(refused, Err(StatusCode::BAD_SECURITY_MODE_INSUFFICIENT));
    let set = ns0(object_ids::SERVER_SERVER_CAPABILITIES_ROLE_SET);
    let add = ns0(method_ids::SERVER_SERVER_CAPABILITIES_ROLE_SET_ADD_ROLE);
    let refused = call(&root, set, add, vec!["X".into(), "".into()]).await;
    assert_eq!(refused, Err(StatusCode::BAD_SECURITY_MODE_INSUFFICIENT));
}

const CHANGE_PASSWORD: u32 = method_ids::USER_MANAGEMENT_CHANGE_PASSWORD;
const MUST_CHANGE: u32 = 8;

/// Waits until a condition holds.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait).await.unwrap_or_else(|_| panic!("{what}"));
}

#[tokio::test]
async fn a_required_password_change_blocks_everything_else() {
    let installation = Installation::new();
    let root = installation.log_on("root", PASSWORD).await.unwrap();
    let add = method_ids::USER_MANAGEMENT_ADD_USER;
    user_method(&root, add, add_user("otto", "first password", MUST_CHANGE)).await.unwrap();
    let rule = rule(IdentityCriteriaType::USER_NAME, "otto");
    call(&root, OPERATOR, ns0(ADD_IDENTITY), vec![rule]).await.unwrap();
    let options: u32 = root.read_value(ns0(variable_ids::USER_MANAGEMENT_PASSWORD_OPTIONS)).await.unwrap();
    assert_eq!(options & 1, 1, "SupportInitialPasswordChange");

    let otto = installation.log_on("otto", "first password").await.unwrap();
    // The role Anonymous sees the Server Object, but cannot call administrative methods.
    assert!(otto.read_value::<i32>("i=2259").await.is_ok());
    let denied = user_method(&otto, add, add_user("anna", "first password", 0)).await;
    assert_eq!(denied, Err(StatusCode::BAD_USER_ACCESS_DENIED));
    let own = installation.server.namespace("urn:test:own").variable("Secret", 1i32).add().unwrap();
    let hidden = otto.read_value::<i32>(own.id().clone()).await.unwrap_err();
    assert_eq!(hidden.status(), StatusCode::BAD_NODE_ID_UNKNOWN);

    // The usual rules for passwords apply.
    for (old, new, status) in [
        ("wrong password", "second password", StatusCode::BAD_IDENTITY_TOKEN_INVALID),
        ("first password", "short", StatusCode::BAD_OUT_OF_RANGE),
        ("first password", "first password", StatusCode::BAD_ALREADY_EXISTS),
    ] {
        let refused = user_method(&otto, CHANGE_PASSWORD, vec![old.into(), new.into()]).await;
        assert_eq!(refused, Err(status), "{new}");
    }
    let change = vec!["first password".into(), "second password".into()];
    user_method(&otto, CHANGE_PASSWORD, change).await.unwrap();
    assert_eq!(
        installation.log_on("otto", "first password").await.err(),
        Some(StatusCode::BAD_USER_ACCESS_DENIED)
    );
    // The session waits until its client activates it again, even on a slow network.
    tokio::time::sleep(Duration::from_millis(700)).await;
    installation.management.tick();
    for _ in 0..10 {
        assert!(otto.read_value::<i32>("i=2259").await.is_ok());
    }
    assert!(otto.read_value::<i32>(own.id().clone()).await.is_err());
    let otto = installation.log_on("otto", "second password").await.unwrap();
    assert_eq!(otto.read_value::<i32>(own.id().clone()).await.unwrap(), 1);

    // A session is closed if its user has to change the password.
    let modify = method_ids::USER_MANAGEMENT_MODIFY_USER;
    let modified = vec![
        "otto".into(),
        false.into(),
        "".into(),
        true.into(),
        MUST_CHANGE.into(),
        false.into(),
        "".into(),
    ];
    user_method(&root, modify, modified).await.unwrap();
    until("the session ends", async || otto.read_value::<i32>(own.id().clone()).await.is_err()).await;
    // The setting survives a restart.
    let installation = installation.restart();
    let otto = installation.log_on("otto", "second password").await.unwrap();
    let own = installation.server.namespace("urn:test:own").variable("Secret", 1i32).add().unwrap();
    assert!(otto.read_value::<i32>(own.id().clone()).await.is_err());
}

#[tokio::test]
async fn a_required_password_change_limits_even_open_permissions() {
    let installation = Installation::with(Authorization::open());
    let own = installation.server.namespace("urn:test:own").variable("Level", 1i32).writable().add().unwrap();
    let olaf = installation.log_on("olaf", PASSWORD).await.unwrap();
    olaf.write(own.id().clone(), 2i32).await.unwrap();
    let root = installation.log_on("root", PASSWORD).await.unwrap();
    let add = method_ids::USER_MANAGEMENT_ADD_USER;
    user_method(&root, add, add_user("otto", "first password", MUST_CHANGE)).await.unwrap();

    let otto = installation.log_on("otto", "first password").await.unwrap();
    assert!(otto.read_value::<i32>("i=2259").await.is_ok());
    let hidden = StatusCode::BAD_NODE_ID_UNKNOWN;
    assert_eq!(otto.read_value::<i32>(own.id().clone()).await.unwrap_err().status(), hidden);
    assert_eq!(otto.write(own.id().clone(), 3i32).await.unwrap_err().status(), hidden);
    // Neither nodes added to namespace 0 nor administrative methods are allowed.
    let denied = user_method(&otto, add, add_user("anna", "first password", 0)).await;
    assert_eq!(denied, Err(StatusCode::BAD_USER_ACCESS_DENIED));

    let change = vec!["first password".into(), "second password".into()];
    user_method(&otto, CHANGE_PASSWORD, change).await.unwrap();
    let otto = installation.log_on("otto", "second password").await.unwrap();
    otto.write(own.id().clone(), 3i32).await.unwrap();
    assert_eq!(own.get().unwrap(), 3);
}

#[tokio::test]
async fn writing_an_exclude_property_inverts_the_list() {
    let installation = Installation::new();
    let root = installation.log_on("root", PASSWORD).await.unwrap();
    let olaf = installation.log_on("olaf", PASSWORD).await.unwrap();
    let space = installation.server.space();
    let property = |name: &str| space.child(&OPERATOR, &QualifiedName::new(0, name)).unwrap();
    let role = || installation.management.authorization().0.role("Operator").unwrap().clone();
    for name in ["ApplicationsExclude", "EndpointsExclude"] {
        let node = property(name);
        assert!(root.read_value::<bool>(node.clone()).await.unwrap());
        assert!(olaf.write(node.clone(), false).await.is_err());
        root.write(node.clone(), false).await.unwrap();
        // When the response arrives, the change is saved and applied.
        let text = std::fs::read_to_string(installation.file()).unwrap();
        let key = name.replace("Exclude", "_exclude").to_lowercase();
        assert!(text.contains(&format!("{key} = false")), "{text}");
        let excludes = match name {
            "ApplicationsExclude" => role().applications.map(|list| list.exclude),
            _ => role().endpoints.map(|list| list.exclude),
        };
        assert_eq!(excludes, Some(false));
        assert!(!root.read_value::<bool>(node.clone()).await.unwrap());
    }
    // Several writes in one request, each with its own result.
    let writes = [("ApplicationsExclude", true), ("EndpointsExclude", true), ("Applications", true)];
    let writes = writes.map(|(name, value)| (property(name), DataValue::new(value)));
    let statuses = root.write_many(writes).await.unwrap();
    assert_eq!(statuses[..2], [StatusCode::GOOD; 2]);
    assert!(statuses[2].is_bad());
    let both = (role().applications.unwrap().exclude, role().endpoints.unwrap().exclude);
    assert_eq!(both, (true, true));
    // The last write wins, although worker threads run in any order.
    for _ in 0..50 {
        let writes = [true, false].map(|value| (property("EndpointsExclude"), DataValue::new(value)));
        assert_eq!(root.write_many(writes).await.unwrap(), [StatusCode::GOOD; 2]);
        assert!(!role().endpoints.unwrap().exclude);
    }
    root.write(property("EndpointsExclude"), true).await.unwrap();
    // A failed save returns an error and changes nothing.
    let (file, away) = (installation.file(), installation.folder.path().join("away"));
    std::fs::rename(&file, &away).unwrap();
    std::fs::create_dir(&file).unwrap();
    let node = property("ApplicationsExclude");
    let refused = root.write(node.clone(), false).await.unwrap_err();
    assert_eq!(refused.status(), StatusCode::BAD_RESOURCE_UNAVAILABLE);
    assert!(root.read_value::<bool>(node).await.unwrap());
    std::fs::remove_dir(&file).unwrap();
    std::fs::rename(&away, &file).unwrap();
    // The lists are changed with Methods. CustomConfiguration is false.
    let custom = property("CustomConfiguration");
    assert!(!root.read_value::<bool>(custom.clone()).await.unwrap());
    for node in [custom, property("Applications")] {
        assert!(root.write(node, true).await.is_err());
    }
}
