//! The UserManagement object (Part 18 §5.2).

use super::arguments::Inputs;
use super::{Management, Outcome, Refused, administers, method};
use crate::users::{PASSWORD_LEN_MAX, PASSWORD_LEN_MIN, User, check_password};
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Instant;
use taktwerk_net::clock;
use taktwerk_schema::ids::{method_ids, variable_ids};
use taktwerk_schema::{PasswordOptionsMask, Range, UserConfigurationMask, UserManagementDataType};
use taktwerk_server::AddressSpace;
use taktwerk_server::callback::CallContext;
use taktwerk_server::space::NodeError;
use taktwerk_types::{DataValue, ExtensionObject, LocalizedText, NodeId, StatusCode, Variant};

/// The bits of UserConfigurationMask that the users file can store.
const SUPPORTED: u32 = UserConfigurationMask::NO_DELETE.0
    | UserConfigurationMask::DISABLED.0
    | UserConfigurationMask::NO_CHANGE_BY_USER.0
    | UserConfigurationMask::MUST_CHANGE_PASSWORD.0;

/// Number of wrong old passwords after which ChangePassword is refused for [`PAUSE`].
const ATTEMPTS_MAX: u32 = 5;
/// How long ChangePassword is refused.
const PAUSE: Duration = Duration::from_secs(60);

/// Wrong old passwords by user. The limit prevents guessing passwords from an open session.
#[derive(Debug, Default)]
pub(super) struct Attempts(BTreeMap<String, (u32, Instant)>);

impl Attempts {
    fn check(&mut self, user: &str, now: Instant) -> Result<(), StatusCode> {
        self.0.retain(|_, (_, last)| now.saturating_duration_since(*last) < PAUSE);
        match self.0.get(user) {
            Some((count, _)) if *count >= ATTEMPTS_MAX => Err(StatusCode::BAD_USER_ACCESS_DENIED),
            _ => Ok(()),
        }
    }

    fn failed(&mut self, user: &str, now: Instant) {
        let (count, last) = self.0.entry(user.to_owned()).or_insert((0, now));
        (*count, *last) = (count.saturating_add(1), now);
    }

    fn succeeded(&mut self, user: &str) {
        self.0.remove(user);
    }
}

pub(super) fn install(management: &Arc<Management>, space: &Arc<AddressSpace>) -> Result<(), NodeError> {
    let ns0 = |id| NodeId::numeric(0, id);
    space.set_method(&ns0(method_ids::USER_MANAGEMENT_ADD_USER), method(management, add_user))?;
    space.set_method(&ns0(method_ids::USER_MANAGEMENT_MODIFY_USER), method(management, modify_user))?;
    space.set_method(&ns0(method_ids::USER_MANAGEMENT_REMOVE_USER), method(management, remove_user))?;
    space
        .set_method(&ns0(method_ids::USER_MANAGEMENT_CHANGE_PASSWORD), method(management, change_password))?;
    let shown: Weak<Management> = Arc::downgrade(management);
    let users = move || {
        let users = shown.upgrade().map(|management| management.store.users());
        let list: Vec<ExtensionObject> = users
            .iter()
            .flat_map(|users| users.iter())
            .map(|user| ExtensionObject::new(&shown_as(user)))
            .collect();
        DataValue::new(list)
    };
    space.set_source(&ns0(variable_ids::USER_MANAGEMENT_USERS), Arc::new(users))?;
    let set = |id, value: Variant| -> Result<(), NodeError> {
        space.variable(&ns0(id))?.set_at(value, clock::wall());
        Ok(())
    };
    #[allow(clippy::cast_precision_loss)] // small numbers
    let length = Range { low: PASSWORD_LEN_MIN as f64, high: PASSWORD_LEN_MAX as f64 };
    set(variable_ids::USER_MANAGEMENT_PASSWORD_LENGTH, ExtensionObject::new(&length).into())?;
    let options = PasswordOptionsMask::SUPPORT_INITIAL_PASSWORD_CHANGE
        | PasswordOptionsMask::SUPPORT_DISABLE_USER
        | PasswordOptionsMask::SUPPORT_DISABLE_DELETE_FOR_USER
        | PasswordOptionsMask::SUPPORT_NO_CHANGE_FOR_USER
        | PasswordOptionsMask::SUPPORT_DESCRIPTION_FOR_USER;
    set(variable_ids::USER_MANAGEMENT_PASSWORD_OPTIONS, options.0.into())?;
    let restrictions = LocalizedText::new("en", "At least 8 characters and at most 1024 bytes.");
    set(variable_ids::USER_MANAGEMENT_PASSWORD_RESTRICTIONS, restrictions.into())
}

fn shown_as(user: &User) -> UserManagementDataType {
    let mut mask = UserConfigurationMask(0);
    for (is_set, bit) in [
        (user.no_delete, UserConfigurationMask::NO_DELETE),
        (user.disabled, UserConfigurationMask::DISABLED),
        (user.no_change_by_user, UserConfigurationMask::NO_CHANGE_BY_USER),
        (user.must_change_password, UserConfigurationMask::MUST_CHANGE_PASSWORD),
    ] {
        if is_set {
            mask |= bit;
        }
    }
    UserManagementDataType {
        user_name: user.name.as_str().into(),
        user_configuration: mask,
        description: user.description.as_str().into(),
    }
}

/// Validates a UserConfigurationMask.
fn configuration(mask: u32) -> Result<UserConfigurationMask, StatusCode> {
    let must_change = UserConfigurationMask::MUST_CHANGE_PASSWORD.0;
    if mask & must_change != 0 && mask & UserConfigurationMask::NO_CHANGE_BY_USER.0 != 0 {
        return Err(StatusCode::BAD_CONFIGURATION_ERROR);
    }
    if mask & !SUPPORTED != 0 { Err(StatusCode::BAD_NOT_SUPPORTED) } else { Ok(UserConfigurationMask(mask)) }
}

fn configure(user: &mut User, mask: UserConfigurationMask) {
    user.no_delete = mask.0 & UserConfigurationMask::NO_DELETE.0 != 0;
    user.disabled = mask.0 & UserConfigurationMask::DISABLED.0 != 0;
    user.no_change_by_user = mask.0 & UserConfigurationMask::NO_CHANGE_BY_USER.0 != 0;
    user.must_change_password = mask.0 & UserConfigurationMask::MUST_CHANGE_PASSWORD.0 != 0;
}

/// Longest description, in bytes.
const DESCRIPTION_LEN_MAX: usize = 1024;

fn described(text: String) -> Result<String, StatusCode> {
    if text.len() > DESCRIPTION_LEN_MAX { Err(StatusCode::BAD_OUT_OF_RANGE) } else { Ok(text) }
}

/// AddUser (Part 18 §5.2.5).
fn add_user(management: &Arc<Management>, caller: &CallContext, mut inputs: Inputs) -> Outcome {
    administers(caller)?;
    let (name, password) = (inputs.text()?, inputs.text()?);
    let (mask, description) = (configuration(inputs.take()?)?, described(inputs.text()?)?);
    let added = management.store.change(|users| -> Result<(), Refused> {
        users.add(&name, password.as_bytes(), Vec::new())?;
        users.edit(&name, |user| {
            configure(user, mask);
            user.description = description;
        })?;
        Ok(())
    });
    added.map_err(|refused| refused.0)?;
    management.users_changed();
    Ok(Vec::new())
}

/// ModifyUser (Part 18 §5.2.6).
fn modify_user(management: &Arc<Management>, caller: &CallContext, mut inputs: Inputs) -> Outcome {
    administers(caller)?;
    let name = inputs.text()?;
    let (changes_password, password): (bool, _) = (inputs.take()?, inputs.text()?);
    let (changes_mask, mask): (bool, u32) = (inputs.take()?, inputs.take()?);
    let (changes_description, description): (bool, _) = (inputs.take()?, inputs.text()?);
    let mask = if changes_mask { Some(configuration(mask)?) } else { None };
    let description = if changes_description { Some(described(description)?) } else { None };
    let disables = mask.is_some_and(|mask| mask.0 & UserConfigurationMask::DISABLED.0 != 0);
    if disables && caller.user.as_deref() == Some(name.as_str()) {
        return Err(StatusCode::BAD_INVALID_SELF_REFERENCE);
    }
    let changed = management.store.change(|users| -> Result<(), Refused> {
        if changes_password {
            users.set_password(&name, password.as_bytes())?;
        }
        users.edit(&name, |user| {
            if let Some(mask) = mask {
                configure(user, mask);
            }
            if let Some(description) = description {
                user.description = description;
            }
        })?;
        Ok(())
    });
    changed.map_err(|refused| refused.0)?;
    if caller.user.as_deref() == Some(name.as_str()) {
        // Close the session if its password was changed, but only after the response.
        management.end_soon();
    } else {
        management.users_changed();
    }
    Ok(Vec::new())
}

/// RemoveUser (Part 18 §5.2.7).
fn remove_user(management: &Arc<Management>, caller: &CallContext, mut inputs: Inputs) -> Outcome {
    administers(caller)?;
    let name = inputs.text()?;
    if caller.user.as_deref() == Some(name.as_str()) {
        return Err(StatusCode::BAD_INVALID_SELF_REFERENCE);
    }
    let removed = management.store.change(|users| -> Result<(), Refused> {
        if users.get(&name).is_some_and(|user| user.no_delete) {
            return Err(StatusCode::BAD_NOT_SUPPORTED.into());
        }
        users.remove(&name)?;
        Ok(())
    });
    removed.map_err(|refused| refused.0)?;
    management.users_changed();
    Ok(Vec::new())
}

/// ChangePassword (Part 18 §5.2.8). Closes sessions that used the old password, except those limited to changing it.
fn change_password(management: &Arc<Management>, caller: &CallContext, mut inputs: Inputs) -> Outcome {
    if !caller.encrypted {
        return Err(StatusCode::BAD_SECURITY_MODE_INSUFFICIENT);
    }
    let (old, new) = (inputs.text()?, inputs.text()?);
    let users = management.store.users();
    // Users with certificates or tokens have no password here.
    let name = caller.user.as_deref().or(caller.user_to_change.as_deref());
    let name = name.ok_or(StatusCode::BAD_INVALID_STATE)?;
    let user = users.get(name).ok_or(StatusCode::BAD_INVALID_STATE)?;
    if user.no_change_by_user {
        return Err(StatusCode::BAD_NOT_SUPPORTED);
    }
    // Checked first: otherwise a caller who knows the old password could request any number of hashes.
    check_password(new.as_bytes()).map_err(|error| Refused::from(error).0)?;
    if old == new {
        return Err(StatusCode::BAD_ALREADY_EXISTS);
    }
    management.inner().attempts.check(name, Instant::now())?;
    if !users.verify(name, old.as_bytes()) {
        management.inner().attempts.failed(name, Instant::now());
        return Err(StatusCode::BAD_IDENTITY_TOKEN_INVALID);
    }
    let seen = management.store.credential(user);
    let changed = management.store.change(|users| -> Result<(), Refused> {
        // The password may have changed since the comparison.
        let is_same = users.get(name).is_some_and(|user| management.store.credential(user) == seen);
        if !is_same {
            return Err(StatusCode::BAD_IDENTITY_TOKEN_INVALID.into());
        }
        users.set_password(name, new.as_bytes())?;
        users.edit(name, |user| user.must_change_password = false)?;
        Ok(())
    });
    changed.map_err(|refused| refused.0)?;
    management.inner().attempts.succeeded(name);
    // Part 18 §5.2.8: a session that had to change the password is activated again, and can do nothing before.
    if caller.user.is_some() {
        management.end_soon();
    }
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_guesses_are_limited() {
        let mut attempts = Attempts::default();
        let start = Instant::now();
        for _ in 0..ATTEMPTS_MAX {
            assert_eq!(attempts.check("olaf", start), Ok(()));
            attempts.failed("olaf", start);
        }
        assert_eq!(attempts.check("olaf", start), Err(StatusCode::BAD_USER_ACCESS_DENIED));
        assert_eq!(attempts.check("olga", start), Ok(()), "other users are not affected");
        assert_eq!(attempts.check("olaf", start + PAUSE), Ok(()));
        attempts.failed("olaf", start + PAUSE);
        attempts.succeeded("olaf");
        assert!(attempts.0.is_empty());
    }

    #[test]
    fn unsupported_settings_are_refused() {
        use UserConfigurationMask as M;
        assert_eq!(configuration(7), Ok(M(7)));
        assert_eq!(configuration(M::MUST_CHANGE_PASSWORD.0 | 3), Ok(M(11)));
        let both = M::MUST_CHANGE_PASSWORD.0 | M::NO_CHANGE_BY_USER.0;
        assert_eq!(configuration(both), Err(StatusCode::BAD_CONFIGURATION_ERROR));
        assert_eq!(configuration(1 << 9), Err(StatusCode::BAD_NOT_SUPPORTED));
    }
}
