//! Reed-Solomon over GF(256) for WebAssembly: the boundary. Numbers only cross it; the TypeScript face (`js/`) copies
//! blocks of columns into the staging area and results out of it.

#![cfg_attr(target_arch = "wasm32", no_std)]

extern crate alloc;

#[cfg(target_arch = "wasm32")]
mod allocator;
#[cfg(target_arch = "wasm32")]
mod boundary;
pub mod codec;
pub mod error;
pub mod field;
pub mod kernel;
pub mod matrix;
