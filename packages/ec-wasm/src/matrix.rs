//! Coefficients of "wanted rows = matrix x present shards", by reed-solomon-erasure.
//!
//! The crate keeps its generator matrix (Vandermonde, made systematic; so row i does not depend on the number of
//! parities) and its inversion private. Handing it the identity matrix as shards makes it spell them out: when present
//! shard j is the j-th unit vector, every shard it reconstructs or encodes *is* its row of coefficients.

use alloc::vec::Vec;

use reed_solomon_erasure::ReedSolomon;

use crate::error::CodecError;
use crate::field::{Gf256, prepare_tables};

/// Total number of rows of the code: the order of the field.
pub const ROWS_MAX: usize = 256;

/// Writes one row of k coefficients for each of `wanted` into `out` (row-major, `wanted.len() * k` bytes).
///
/// `present` are the k distinct rows at hand, in any order; coefficient j belongs to `present[j]`. With `present` 0..k
/// this is plain encoding. Fails with `DataCountInvalid`, `IndicesInvalid` or `TooLarge` (`out` too short).
pub fn coefficients(present: &[u8], wanted: &[u8], out: &mut [u8]) -> Result<(), CodecError> {
    let k = present.len();
    if k == 0 || k >= ROWS_MAX {
        return Err(CodecError::DataCountInvalid);
    }
    if present.iter().enumerate().any(|(j, index)| present[..j].contains(index)) {
        return Err(CodecError::IndicesInvalid);
    }
    let out = out.get_mut(..wanted.len() * k).ok_or(CodecError::TooLarge)?;
    prepare_tables();
    let rows = express_in(present, wanted)?;
    for (row, &index) in out.chunks_exact_mut(k).zip(wanted) {
        row.copy_from_slice(&rows[index as usize]);
    }
    Ok(())
}

/// Rows of the code, by index, each as its k coefficients over the `present` rows; those of parities hold only when
/// some parity is wanted.
fn express_in(present: &[u8], wanted: &[u8]) -> Result<Vec<Vec<u8>>, CodecError> {
    let k = present.len();
    let total = highest(present, wanted, k) + 1;
    let code = ReedSolomon::<Gf256>::new(k, total - k)?;
    let mut rows: Vec<(Vec<u8>, bool)> = (0..total).map(|_| (alloc::vec![0; k], false)).collect();
    for (j, &index) in present.iter().enumerate() {
        let (row, is_present) = &mut rows[index as usize];
        row[j] = 1;
        *is_present = true;
    }
    code.reconstruct_data(&mut rows)?;
    let mut rows: Vec<Vec<u8>> = rows.into_iter().map(|(row, _)| row).collect();
    if wanted.iter().any(|&index| index as usize >= k) {
        code.encode(&mut rows)?;
    }
    Ok(rows)
}

/// The highest row that takes part; at least k, because the crate wants one parity.
fn highest(present: &[u8], wanted: &[u8], k: usize) -> usize {
    present.iter().chain(wanted).map(|&index| index as usize).fold(k, usize::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parity_row_does_not_depend_on_how_many_parities_there_are() {
        let data: Vec<u8> = (0..9).collect();
        let mut one = [0; 9];
        coefficients(&data, &[9], &mut one).unwrap();
        let mut all = alloc::vec![0; 247 * 9];
        coefficients(&data, &(9..=255).collect::<Vec<u8>>(), &mut all).unwrap();
        assert_eq!(one, all[..9]);
    }

    #[test]
    fn present_rows_in_another_order_have_the_same_coefficients() {
        let mut ascending = [0; 3];
        coefficients(&[0, 2, 4], &[1], &mut ascending).unwrap();
        let mut mixed = [0; 3];
        coefficients(&[4, 0, 2], &[1], &mut mixed).unwrap();
        assert_eq!(mixed, [ascending[2], ascending[0], ascending[1]]);
    }

    #[test]
    fn a_present_row_is_itself() {
        let mut row = [9; 4];
        coefficients(&[0, 2, 3, 7], &[3], &mut row).unwrap();
        assert_eq!(row, [0, 0, 1, 0]);
    }

    #[test]
    fn bad_arguments_are_refused_with_their_own_error() {
        let mut out = [0; 8];
        assert_eq!(coefficients(&[], &[0], &mut out), Err(CodecError::DataCountInvalid));
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(coefficients(&all, &[0], &mut out), Err(CodecError::DataCountInvalid));
        assert_eq!(coefficients(&[1, 1], &[0], &mut out), Err(CodecError::IndicesInvalid));
        assert_eq!(coefficients(&[2, 1, 2], &[0], &mut out), Err(CodecError::IndicesInvalid));
        assert_eq!(coefficients(&[0, 1, 2], &[3, 4, 5], &mut out), Err(CodecError::TooLarge));
    }
}
