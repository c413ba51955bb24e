//! Security policies, and the interface for cryptographic libraries.
//!
//! Without features this crate contains no cryptography and builds for WebAssembly. It defines what the protocol needs:
//!
//! - [`policy`]: the table of security policies (Part 7) with their sizes; [`mode`]: the message security modes;
//! - [`provider`]: the traits that a cryptographic library implements: keyed contexts for chunks ([`SymmetricKeys`]),
//!   key agreement, signatures, certificate validation;
//! - [`validator`]: the interface to the trust lists; [`certificate`]: X.509 and its validation;
//! - [`secret`]: passwords and tokens sent to a server (Part 4 §7.40.2), on the provider's primitives;
//! - [`job`]: the slow operations as data, so that a driver can run them on any thread;
//! - [`session_signature`]: the signatures of CreateSession and ActivateSession (Part 4 §6.1.8);
//! - [`null`]: the provider that supports policy None only;
//! - `aws_lc` (feature `aws-lc`): the provider with real cryptography;
//! - [`pubsub`]: the corresponding interface for the message security of PubSub;
//! - [`entropy`]: randomness as a parameter; [`der`]: the first certificate of a chain.
//!
//! It does no I/O and reads no clock.

#![forbid(unsafe_code)]

#[cfg(feature = "aws-lc")]
pub mod aws_lc;
pub mod certificate;
pub mod der;
pub mod entropy;
pub mod error;
pub mod job;
pub mod mode;
pub mod null;
pub mod policy;
pub mod provider;
pub mod pubsub;
#[cfg(feature = "aws-lc")]
pub mod pubsub_aws;
pub mod secret;
pub mod session_signature;
pub mod validator;

pub use entropy::{Entropy, SeededEntropy};
pub use error::{CertificateRefusal, CryptoError};
pub use job::{Agreed, Agreement, Job, JobOutput, OpenChunk, SealChunk};
pub use mode::MessageSecurityMode;
pub use null::NullProvider;
pub use policy::{PolicyInfo, SecurityPolicy};
pub use provider::{
    CertificatePurpose, ChunkLayout, ChunkNonce, DisclosedKeys, EphemeralKey, KeyAgreement, KeyLog,
    PayloadKeys, PeerKey, Provider, Role, SymmetricKeys, TokenKeys,
};
pub use pubsub::{PubSubKeys, PubSubProvider, PubSubSecurityPolicy};
pub use secret::{EncryptedSecret, OpenSecret, SealSecret, Secret};
pub use session_signature::{SessionBinding, SignedData};
pub use validator::CertificateValidator;
