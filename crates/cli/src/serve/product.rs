//! What a server tells about this program in ServerStatus.BuildInfo.

use taktwerk::server::BuildInfo;

/// Name, version, commit and date of this program. The build script finds commit and date.
pub(super) fn build_info() -> BuildInfo {
    let mut info = BuildInfo::new("Taktwerk", "Taktwerk", env!("CARGO_PKG_VERSION"))
        .built_at(option_env!("TAKTWERK_BUILD_TIME"));
    if let Some(commit) = option_env!("TAKTWERK_BUILD_COMMIT") {
        commit.clone_into(&mut info.build_number);
    }
    info
}
