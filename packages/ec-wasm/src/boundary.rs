//! Exported functions over the one codec of an instance. A status of 0 is success, others are `CodecError`s.

use core::cell::UnsafeCell;

use wasm_bindgen::prelude::wasm_bindgen;

use crate::allocator;
use crate::codec::Codec;
use crate::error::CodecError;
use crate::kernel;

struct Shared(UnsafeCell<Codec>);
// SAFETY: a WASM instance without shared memory runs one call at a time, and no call re-enters another.
unsafe impl Sync for Shared {}

static CODEC: Shared = Shared(UnsafeCell::new(Codec::new()));

fn codec() -> &'static mut Codec {
    // SAFETY: see `Shared`; every exported function takes the reference once and drops it before it returns.
    unsafe { &mut *CODEC.0.get() }
}

fn status(result: Result<(), CodecError>) -> u32 {
    result.map_or_else(|error| error as u32, |()| 0)
}

/// Which kernel was compiled in: 0 scalar, 1 SIMD, 2 SIMD with relaxed swizzle.
#[wasm_bindgen(js_name = kernelName)]
pub fn kernel_name() -> u32 {
    kernel::NAME as u32
}

/// Address of the staging area.
#[wasm_bindgen(js_name = stagingAt)]
pub fn staging_at() -> usize {
    codec().staging.as_ptr() as usize
}

/// Address of the matrix.
#[wasm_bindgen(js_name = matrixAt)]
pub fn matrix_at() -> usize {
    codec().matrix.as_ptr() as usize
}

/// Rows that one `apply` can compute from k inputs.
#[wasm_bindgen(js_name = rowsMax)]
pub fn rows_max(k: usize) -> usize {
    Codec::rows_max(k)
}

/// See [`Codec::solve`].
#[wasm_bindgen]
pub fn solve(k: usize, wanted_count: usize) -> u32 {
    allocator::scope(|| status(codec().solve(k, wanted_count)))
}

/// See [`Codec::prepare`]; 0 when that fails.
#[wasm_bindgen]
pub fn prepare(k: usize, rows: usize) -> usize {
    codec().prepare(k, rows).unwrap_or(0)
}

/// See [`Codec::apply`].
#[wasm_bindgen]
pub fn apply(stride: usize, len: usize) -> u32 {
    status(codec().apply(stride, len))
}
