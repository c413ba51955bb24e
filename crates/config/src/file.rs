//! Re-exports of the file helpers that this crate and its users need.

pub use taktwerk_files::{
    PRIVATE, PUBLIC, SECRET_LEN_MAX, is_exposed, open_regular, read_bytes, read_text, replace,
};
