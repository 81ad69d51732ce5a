//! The codec's memory: matrix, tables and staging of fixed size, so that a decode of any length grows nothing.

use crate::error::CodecError;
use crate::kernel::{self, SLACK_BYTES};
use crate::matrix::{self, ROWS_MAX};

/// Room for the largest matrix: 256 rows of 255 coefficients.
pub const MATRIX_BYTES: usize = ROWS_MAX * ROWS_MAX;
/// Room for the tables of one call of `apply`: with SIMD 32 bytes a coefficient, so that any decode fits at once. A
/// decode has as many rows as there are parities among the k shards present: 256 - k at most, and k (256 - k) is 16,384
/// at most.
pub const TABLES_BYTES: usize = 512 * 1024;
/// Room for one block of columns of all shards.
pub const STAGING_BYTES: usize = 448 * 1024;
/// Longest block of one shard; 12 shards of it fit in the second-level cache of any current machine.
const BLOCK_BYTES_MAX: usize = 16 * 1024;

/// All memory of one instance; all zero is its valid first state.
#[repr(C, align(64))]
pub struct Codec {
    pub staging: [u8; STAGING_BYTES],
    tables: [u8; TABLES_BYTES],
    pub matrix: [u8; MATRIX_BYTES],
    /// (k, rows) of the prepared tables.
    prepared: (usize, usize),
}

impl Codec {
    pub const fn new() -> Self {
        Codec { staging: [0; STAGING_BYTES], tables: [0; TABLES_BYTES], matrix: [0; MATRIX_BYTES], prepared: (0, 0) }
    }

    /// Makes the matrix for the k present and the wanted row indices, which `staging` begins with, one byte each.
    /// Leaves it in `matrix`, row-major.
    pub fn solve(&mut self, k: usize, wanted_count: usize) -> Result<(), CodecError> {
        if k >= ROWS_MAX || wanted_count > ROWS_MAX {
            return Err(CodecError::DataCountInvalid);
        }
        let (present, wanted) = self.staging[..k + wanted_count].split_at(k);
        matrix::coefficients(present, wanted, &mut self.matrix)
    }

    /// How many rows one `apply` can compute from k inputs.
    pub fn rows_max(k: usize) -> usize {
        (1..=ROWS_MAX).rev().find(|&rows| kernel::table_bytes(k, rows) <= TABLES_BYTES).unwrap_or(0)
    }

    /// Builds the kernel's tables from the first `rows` rows of `matrix`. Returns the stride for which k inputs and the
    /// outputs fit in `staging`: the bytes of a block, and `SLACK_BYTES` more, which also keep the shards of a block
    /// from falling on the same cache set.
    pub fn prepare(&mut self, k: usize, rows: usize) -> Result<usize, CodecError> {
        if k == 0 || k >= ROWS_MAX || rows > ROWS_MAX || kernel::table_bytes(k, rows) > TABLES_BYTES {
            return Err(CodecError::TooLarge);
        }
        kernel::prepare(&self.matrix, k, rows, &mut self.tables);
        self.prepared = (k, rows);
        let stride = STAGING_BYTES / (k + rows) / SLACK_BYTES * SLACK_BYTES;
        Ok(stride.min(BLOCK_BYTES_MAX + SLACK_BYTES))
    }

    /// Computes the prepared rows over `len` bytes: `staging` holds k inputs, then the outputs, `stride` bytes apart.
    /// Fails with `TooLarge` unless `len` plus the kernel's slack fits in a stride and all strides fit in `staging`.
    pub fn apply(&mut self, stride: usize, len: usize) -> Result<(), CodecError> {
        let (k, rows) = self.prepared;
        let fits = stride <= STAGING_BYTES && (k + rows) * stride <= STAGING_BYTES;
        if !fits || len.saturating_add(SLACK_BYTES) > stride {
            return Err(CodecError::TooLarge);
        }
        // SAFETY: the tables were prepared for this k and rows, and the strides were checked above.
        unsafe { kernel::apply(self.tables.as_ptr(), k, rows, self.staging.as_mut_ptr(), stride, len) };
        Ok(())
    }
}

impl Default for Codec {
    fn default() -> Self {
        Self::new()
    }
}
