//! An independent model of Part 3 §4.9, §8.55 and §8.56: roles and permissions by name, one rule each.

use taktwerk_types::StatusCode;

/// The access rights of a test node.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    /// The permissions of each role, by their names.
    pub(super) roles: Vec<(&'static str, Vec<&'static str>)>,
    pub(super) signing: bool,
    pub(super) encryption: bool,
    pub(super) also_browse: bool,
}

/// The caller.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) roles: Vec<&'static str>,
    /// 1 None, 2 Sign, 3 SignAndEncrypt.
    pub(super) mode: u8,
}

/// The access paths to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Path {
    ReadValue,
    ReadName,
    ReadRolePermissions,
    Write,
    BrowseFrom,
    BrowseTo,
    BrowseNext,
    TranslateFrom,
    TranslateTo,
    CallMethod,
    CallOnObject,
    Monitor,
    FirstSample,
    /// The next sample of an item created while its session had all permissions.
    LaterSample,
    /// The report of a subscription created with all permissions, after its transfer to another session.
    Transfer,
    Register,
    /// What PubSub publishes, writes and calls for a caller, with messages secured by the mode.
    Published,
    Target,
    Action,
}

pub(super) const GOOD: StatusCode = StatusCode::GOOD;

/// The expected status for each path. Nodes missing from a list count as unknown.
pub(super) fn answer(caller: &Caller, rules: &Rules, path: Path) -> StatusCode {
    use StatusCode as S;
    let is_hidden = permissions(caller, rules).is_empty();
    let shown = |status: StatusCode, otherwise: StatusCode| if status == GOOD { GOOD } else { otherwise };
    match path {
        Path::ReadValue | Path::FirstSample | Path::LaterSample | Path::Transfer => {
            may(caller, rules, "Read")
        }
        Path::Published => may(caller, rules, "Read"),
        Path::Target => may(caller, rules, "Write"),
        Path::Action => may(caller, rules, "Call"),
        Path::ReadName | Path::BrowseFrom => may(caller, rules, "Browse"),
        Path::ReadRolePermissions => may(caller, rules, "ReadRolePermissions"),
        Path::Write => may(caller, rules, "Write"),
        Path::BrowseTo | Path::BrowseNext => shown(may(caller, rules, "Browse"), S::BAD_NODE_ID_UNKNOWN),
        Path::TranslateTo => shown(may(caller, rules, "Browse"), S::BAD_NO_MATCH),
        // The path of the test has no target.
        Path::TranslateFrom => match may(caller, rules, "Browse") {
            GOOD => S::BAD_NO_MATCH,
            refused => refused,
        },
        Path::CallMethod if is_hidden => S::BAD_METHOD_INVALID,
        Path::CallMethod | Path::CallOnObject => may(caller, rules, "Call"),
        Path::Monitor if is_hidden => S::BAD_NODE_ID_UNKNOWN,
        // Part 4 §5.13.2.1: the first notification contains the status.
        Path::Monitor => GOOD,
        // Nothing is checked, so nothing is revealed.
        Path::Register => GOOD,
    }
}

fn permissions(caller: &Caller, rules: &Rules) -> Vec<&'static str> {
    let mine = rules.roles.iter().filter(|(role, _)| caller.roles.contains(role));
    mine.flat_map(|(_, permissions)| permissions.iter().copied()).collect()
}

fn may(caller: &Caller, rules: &Rules, permission: &str) -> StatusCode {
    let mine = permissions(caller, rules);
    let is_restricted = permission != "Browse" || rules.also_browse;
    let is_too_weak = (rules.signing && caller.mode < 2) || (rules.encryption && caller.mode < 3);
    if mine.is_empty() {
        StatusCode::BAD_NODE_ID_UNKNOWN
    } else if !mine.contains(&permission) {
        StatusCode::BAD_USER_ACCESS_DENIED
    } else if is_restricted && is_too_weak {
        StatusCode::BAD_SECURITY_MODE_INSUFFICIENT
    } else {
        GOOD
    }
}
