//! Kernel on WebAssembly SIMD: a product c*x is the XOR of two 16-entry lookups, by the low and the high nibble of x
//! (Plank, Greenan, Miller: "Screaming Fast Galois Field Arithmetic Using Intel SIMD Instructions", FAST'13), with
//! `i8x16.swizzle` as the lookup. The relaxed swizzle is a single instruction on x64 where the plain one needs a
//! saturating add first; indices are below 16, where both agree on every machine.

use core::arch::wasm32::*;

use super::KernelName;
use crate::field::{mul, prepare_tables};

#[cfg(target_feature = "relaxed-simd")]
pub const NAME: KernelName = KernelName::Relaxed;
#[cfg(not(target_feature = "relaxed-simd"))]
pub const NAME: KernelName = KernelName::Simd;

const VECTOR_BYTES: usize = 16;
/// Low-nibble products, then high-nibble products.
const TABLE_BYTES: usize = 2 * VECTOR_BYTES;
/// More rows than this at a time do not fit in the 16 vector registers of x64.
const ROWS_PER_PASS: usize = 4;

/// Bytes of tables that [`prepare`] writes for a matrix of `rows` x `k`.
pub const fn table_bytes(k: usize, rows: usize) -> usize {
    rows * k * TABLE_BYTES
}

/// Fills `tables` (at least `table_bytes(k, rows)` bytes) for the row-major `matrix`, in the order in which [`apply`]
/// reads them: by pass, then by input, then by row.
pub fn prepare(matrix: &[u8], k: usize, rows: usize, tables: &mut [u8]) {
    prepare_tables();
    let mut tables = tables.chunks_exact_mut(TABLE_BYTES);
    for pass in matrix[..rows * k].chunks(ROWS_PER_PASS * k) {
        for j in 0..k {
            for row in pass.chunks_exact(k) {
                if let Some(table) = tables.next() {
                    fill(row[j], table);
                }
            }
        }
    }
}

/// Multiplication is linear: four products give all 16 of a nibble.
fn fill(c: u8, table: &mut [u8]) {
    for (shift, half) in [0, 4].into_iter().zip(table.chunks_exact_mut(VECTOR_BYTES)) {
        half[0] = 0;
        for bit in 0..4 {
            let first = 1usize << bit;
            let high = mul(c, 1 << (bit + shift));
            for low in 0..first {
                half[first + low] = half[low] ^ high;
            }
        }
    }
}

/// Computes `rows` output shards from k input shards.
///
/// `shards` points at k inputs followed by `rows` outputs, `stride` bytes apart.
///
/// # Safety
/// `tables` holds what [`prepare`] wrote for the same k and rows; `shards` is valid for `(k + rows) * stride` bytes and
/// `len + SLACK_BYTES <= stride`: whole vectors are read and written.
pub unsafe fn apply(tables: *const u8, k: usize, rows: usize, shards: *mut u8, stride: usize, len: usize) {
    for first in (0..rows).step_by(ROWS_PER_PASS) {
        // SAFETY: the pass's tables and its outputs lie inside what the caller vouches for.
        unsafe {
            let pass_tables = tables.add(first * k * TABLE_BYTES);
            let outputs = shards.add((k + first) * stride);
            match rows - first {
                1 => apply_rows::<1, 4>(pass_tables, k, shards, outputs, stride, len),
                2 => apply_rows::<2, 2>(pass_tables, k, shards, outputs, stride, len),
                3 => apply_rows::<3, 2>(pass_tables, k, shards, outputs, stride, len),
                _ => apply_rows::<4, 2>(pass_tables, k, shards, outputs, stride, len),
            }
        }
    }
}

/// R rows, U vectors of each at a time: R * U sums stay in registers over all k inputs.
#[inline(always)]
unsafe fn apply_rows<const R: usize, const U: usize>(
    tables: *const u8,
    k: usize,
    inputs: *const u8,
    outputs: *mut u8,
    stride: usize,
    len: usize,
) {
    // SAFETY: as in `apply`. The volatile read hides that the mask is a constant: V8 would make a constant in every
    // turn of the loop instead of keeping it in a register.
    unsafe {
        let mask = u8x16_splat(0x0f);
        let nibble = core::ptr::read_volatile(&raw const mask);
        let mut column = 0;
        while column < len {
            let mut sums = [[u8x16_splat(0); U]; R];
            let mut table = tables.cast::<v128>();
            let mut input = inputs.add(column);
            for _ in 0..k {
                let bytes: [v128; U] = core::array::from_fn(|u| v128_load(input.add(u * VECTOR_BYTES).cast()));
                let low: [v128; U] = core::array::from_fn(|u| v128_and(bytes[u], nibble));
                let high: [v128; U] = core::array::from_fn(|u| v128_and(u16x8_shr(bytes[u], 4), nibble));
                for sum in &mut sums {
                    let (low_products, high_products) = (v128_load(table), v128_load(table.add(1)));
                    for u in 0..U {
                        let product = v128_xor(lookup(low_products, low[u]), lookup(high_products, high[u]));
                        sum[u] = v128_xor(sum[u], product);
                    }
                    table = table.add(2);
                }
                input = input.add(stride);
            }
            for (r, sum) in sums.iter().enumerate() {
                for (u, &vector) in sum.iter().enumerate() {
                    v128_store(outputs.add(r * stride + column + u * VECTOR_BYTES).cast(), vector);
                }
            }
            column += U * VECTOR_BYTES;
        }
    }
}

#[cfg(target_feature = "relaxed-simd")]
#[inline(always)]
fn lookup(table: v128, indices: v128) -> v128 {
    i8x16_relaxed_swizzle(table, indices)
}

#[cfg(not(target_feature = "relaxed-simd"))]
#[inline(always)]
fn lookup(table: v128, indices: v128) -> v128 {
    i8x16_swizzle(table, indices)
}
