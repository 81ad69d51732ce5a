//! The codec as the TypeScript face drives it, for tests: whole shards in, whole shards out.

use agarose_ec::codec::{Codec, STAGING_BYTES};
use agarose_ec::error::CodecError;
use agarose_ec::kernel::SLACK_BYTES;

/// Computes the `wanted` rows from the k `present` ones (ascending).
pub fn compute(codec: &mut Codec, present: &[u8], inputs: &[&[u8]], wanted: &[u8]) -> Result<Vec<Vec<u8>>, CodecError> {
    let (k, bytes) = (present.len(), inputs[0].len());
    codec.staging[..k].copy_from_slice(present);
    codec.staging[k..k + wanted.len()].copy_from_slice(wanted);
    codec.solve(k, wanted.len())?;
    let matrix = codec.matrix[..k * wanted.len()].to_vec();
    let mut outputs = vec![];
    let rows_max = Codec::rows_max(k).min(STAGING_BYTES / (bytes + SLACK_BYTES) - k);
    for rows in matrix.chunks(rows_max * k) {
        codec.matrix[..rows.len()].copy_from_slice(rows);
        outputs.extend(compute_group(codec, inputs, rows.len() / k)?);
    }
    Ok(outputs)
}

fn compute_group(codec: &mut Codec, inputs: &[&[u8]], rows: usize) -> Result<Vec<Vec<u8>>, CodecError> {
    let bytes = inputs[0].len();
    let stride = bytes + SLACK_BYTES;
    codec.prepare(inputs.len(), rows)?;
    for (at, input) in inputs.iter().enumerate() {
        codec.staging[at * stride..][..bytes].copy_from_slice(input);
    }
    codec.apply(stride, bytes)?;
    let outputs = codec.staging[inputs.len() * stride..].chunks(stride).take(rows);
    Ok(outputs.map(|output| output[..bytes].to_vec()).collect())
}
