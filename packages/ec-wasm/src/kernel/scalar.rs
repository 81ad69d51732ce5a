//! Kernel without SIMD: one table per (four rows, input) holds the four products of every byte packed in 32 bits, so a
//! column costs one lookup per input for up to four rows.

use super::KernelName;
use crate::field::{mul, prepare_tables};

#[allow(dead_code)] // only the compiled-in kernel's name is used
pub const NAME: KernelName = KernelName::Scalar;

const ROWS_PER_TABLE: usize = 4;
const TABLE_BYTES: usize = 256 * 4;
const COLUMNS: usize = 4;

/// Bytes of tables that [`prepare`] writes for a matrix of `rows` x `k`.
pub const fn table_bytes(k: usize, rows: usize) -> usize {
    rows.div_ceil(ROWS_PER_TABLE) * k * TABLE_BYTES
}

/// Fills `tables` (at least `table_bytes(k, rows)` bytes) for the row-major `matrix`.
pub fn prepare(matrix: &[u8], k: usize, rows: usize, tables: &mut [u8]) {
    prepare_tables();
    let groups = matrix[..rows * k].chunks(ROWS_PER_TABLE * k);
    for (group, group_tables) in groups.zip(tables.chunks_exact_mut(k * TABLE_BYTES)) {
        for (j, table) in group_tables.chunks_exact_mut(TABLE_BYTES).enumerate() {
            let product = |byte: u8| {
                let mut packed = [0; 4];
                for (r, row) in group.chunks_exact(k).enumerate() {
                    packed[r] = mul(row[j], byte);
                }
                u32::from_le_bytes(packed)
            };
            fill(table, product);
        }
    }
}

/// Multiplication is linear: eight products give all 256.
fn fill(table: &mut [u8], product: impl Fn(u8) -> u32) {
    let mut entries = [0u32; 256];
    for bit in 0..8 {
        let first = 1usize << bit;
        let high = product(first as u8);
        for low in 0..first {
            entries[first + low] = entries[low] ^ high;
        }
    }
    for (bytes, entry) in table.chunks_exact_mut(4).zip(entries) {
        bytes.copy_from_slice(&entry.to_le_bytes());
    }
}

/// Computes `rows` output shards from k input shards.
///
/// `shards` points at k inputs followed by `rows` outputs, `stride` bytes apart.
///
/// # Safety
/// `tables` holds what [`prepare`] wrote for the same k and rows; `shards` is valid for `(k + rows) * stride` bytes and
/// `len + SLACK_BYTES <= stride`: whole words are read and written.
pub unsafe fn apply(tables: *const u8, k: usize, rows: usize, shards: *mut u8, stride: usize, len: usize) {
    for first in (0..rows).step_by(ROWS_PER_TABLE) {
        // SAFETY: the group's tables and its outputs lie inside what the caller vouches for.
        unsafe {
            let group_tables = tables.add(first * k / ROWS_PER_TABLE * TABLE_BYTES);
            let outputs = shards.add((k + first) * stride);
            match rows - first {
                1 => apply_rows::<1>(group_tables, k, shards, outputs, stride, len),
                2 => apply_rows::<2>(group_tables, k, shards, outputs, stride, len),
                3 => apply_rows::<3>(group_tables, k, shards, outputs, stride, len),
                _ => apply_rows::<4>(group_tables, k, shards, outputs, stride, len),
            }
        }
    }
}

/// Four columns at a time, so that inputs are read and outputs written in words.
unsafe fn apply_rows<const R: usize>(
    tables: *const u8,
    k: usize,
    inputs: *const u8,
    outputs: *mut u8,
    stride: usize,
    len: usize,
) {
    for column in (0..len).step_by(COLUMNS) {
        let mut sums = [0u32; COLUMNS];
        // SAFETY: as in `apply`; the last word may lie in the slack.
        unsafe {
            let mut table = tables.cast::<u32>();
            let mut input = inputs.add(column);
            for _ in 0..k {
                let word = input.cast::<u32>().read_unaligned();
                for (c, sum) in sums.iter_mut().enumerate() {
                    *sum ^= table.add((word >> (8 * c) & 0xff) as usize).read_unaligned();
                }
                table = table.add(256);
                input = input.add(stride);
            }
            for r in 0..R {
                let word = u32::from_le_bytes(sums.map(|sum| (sum >> (8 * r)) as u8));
                outputs.add(r * stride + column).cast::<u32>().write_unaligned(word);
            }
        }
    }
}
