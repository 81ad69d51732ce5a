//! "Missing rows = matrix x k shards" over bytes, the loop that all the time goes into.
//!
//! One kernel is compiled in, by target feature: [`simd128`] (with relaxed or plain swizzle) or [`scalar`]. Both keep
//! all rows of a group in registers while they pass once over the k inputs, column by column.

pub mod scalar;
#[cfg(target_feature = "simd128")]
pub mod simd128;

#[cfg(not(target_feature = "simd128"))]
pub use scalar::{NAME, apply, prepare, table_bytes};
#[cfg(target_feature = "simd128")]
pub use simd128::{NAME, apply, prepare, table_bytes};

/// Which kernel a build has, as a number for the WASM boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum KernelName {
    Scalar = 0,
    Simd = 1,
    Relaxed = 2,
}

/// A kernel may read and write this many bytes past `len` of every shard: strides leave room for it.
pub const SLACK_BYTES: usize = 64;
