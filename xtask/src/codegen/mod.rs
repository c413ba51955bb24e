//! Code generation: reads the published NodeSet and writes the generated files of `taktwerk-types` and
//! `taktwerk-schema`. The output is committed; `--check` verifies that it is up to date.

mod bsd;
mod descriptions;
mod enumerations;
mod event_types;
mod ids;
mod messages;
mod names;
mod namespace_zero;
mod node_ids;
mod output;
mod status_codes;
mod structures;
mod types;

use crate::Failure;
use crate::inputs;
use output::Output;
pub(crate) use output::files_below;
use std::path::Path;
use taktwerk_nodeset::{NodeSet, TypeDictionary};

/// The NodeSet of namespace 0 inside its package.
const NODESET: &str = "nodesets/Opc.Ua.NodeSet2.xml";
/// The binary type dictionary: the only published file with the fields of service messages.
const TYPE_DICTIONARY: &str = "nodesets/Opc.Ua.Types.bsd";

/// Writes all generated files; with `check`, fails if a committed one differs.
pub(crate) fn run(root: &Path, check: bool) -> Result<(), Failure> {
    let text = inputs::NODESETS.read(root, NODESET)?;
    let set = NodeSet::parse("Opc.Ua.NodeSet2.xml", &text).map_err(|error| error.to_string())?;
    let node_ids = node_ids::parse(&inputs::NODE_IDS.read(root, "source/opcua_node_ids.ts")?)?;
    let mut dictionary = TypeDictionary::default();
    dictionary.add(&set);
    let services = bsd::parse(&inputs::NODESETS.read(root, TYPE_DICTIONARY)?)?;
    bsd::add_missing(&services, &node_ids, &mut dictionary)?;
    bsd::compare(&services, &dictionary)?;
    let model = types::Model::new(&dictionary)?;

    let mut output = Output::default();
    let codes = inputs::STATUS_CODES.read(root, "source/_generated_status_codes.ts")?;
    output.rust("crates/types/src/status_code/generated.rs", status_codes::generate(&codes)?);
    enumerations::generate(&model, &mut output);
    structures::generate(&model, &mut output)?;
    messages::generate(&model, &mut output);
    descriptions::generate(&model, &mut output);
    ids::generate(&set, &node_ids, &mut output)?;
    namespace_zero::generate(&set, &dictionary, &mut output)?;
    event_types::generate(&set, &mut output)?;
    output.finish(root, check)
}

#[cfg(test)]
mod tests {
    /// Fetches the published files if they are not cached; fails without a network and a cache.
    #[test]
    fn committed_files_are_what_the_generator_writes() {
        super::run(&crate::workspace_root(), true).unwrap();
    }
}
