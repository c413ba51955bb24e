// Written by `cargo xtask codegen` from the OPC UA 1.05.07 NodeSet. Do not edit.

//! Numeric ids of namespace 0, by node class.

pub mod data_type_ids;
pub mod encoding_ids;
pub mod method_ids;
pub mod object_ids;
pub mod object_type_ids;
pub mod reference_type_ids;
pub mod variable_ids;
pub mod variable_type_ids;
