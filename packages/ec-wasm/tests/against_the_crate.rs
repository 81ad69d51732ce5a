//! The codec against reed-solomon-erasure's own `galois_8`: bit for bit, for every loss pattern and for random codes.

mod common;

use agarose_ec::codec::{Codec, STAGING_BYTES};
use agarose_ec::error::CodecError;
use common::compute;
use proptest::prelude::*;
use reed_solomon_erasure::galois_8::ReedSolomon;

/// A stripe of k data and m parity shards, encoded by the crate.
fn stripe(k: usize, m: usize, bytes: usize, seed: u64) -> Vec<Vec<u8>> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    let mut shards: Vec<Vec<u8>> = (0..k).map(|_| (0..bytes).map(|_| next()).collect()).collect();
    shards.resize(k + m, vec![0; bytes]);
    ReedSolomon::new(k, m).unwrap().encode(&mut shards).unwrap();
    shards
}

fn recover(codec: &mut Codec, stripe: &[Vec<u8>], kept: &[u8], wanted: &[u8]) {
    let inputs: Vec<&[u8]> = kept.iter().map(|&index| stripe[index as usize].as_slice()).collect();
    let expected: Vec<Vec<u8>> = wanted.iter().map(|&index| stripe[index as usize].clone()).collect();
    assert_eq!(compute(codec, kept, &inputs, wanted), Ok(expected), "from {kept:?}");
}

/// All ways to choose `size` of `from..n`.
fn combinations(n: u8, size: usize, from: u8) -> Vec<Vec<u8>> {
    if size == 0 {
        return vec![vec![]];
    }
    (from..=n - size as u8)
        .flat_map(|first| {
            combinations(n, size - 1, first + 1).into_iter().map(move |rest| [vec![first], rest].concat())
        })
        .collect()
}

#[test]
fn every_loss_pattern_of_common_codes_is_recovered() {
    let mut codec = Box::new(Codec::new());
    for (k, m) in [(1, 1), (2, 1), (4, 2), (6, 3), (9, 3), (10, 4)] {
        let stripe = stripe(k, m, 37, 7);
        for kept in combinations((k + m) as u8, k, 0) {
            let lost: Vec<u8> = (0..(k + m) as u8).filter(|index| !kept.contains(index)).collect();
            recover(&mut codec, &stripe, &kept, &lost);
        }
    }
}

/// Some published builds of the crate trap on the second of these.
#[test]
fn the_same_pattern_of_lost_data_and_parity_is_recovered_again_and_again() {
    let mut codec = Box::new(Codec::new());
    let stripe = stripe(10, 3, 64, 3);
    let kept: Vec<u8> = (1..=10).collect();
    for _ in 0..20 {
        recover(&mut codec, &stripe, &kept, &[0, 11, 12]);
    }
}

#[test]
fn work_that_does_not_fit_is_refused_and_the_codec_goes_on() {
    let mut codec = Box::new(Codec::new());
    let stripe = stripe(4, 2, 20, 5);
    recover(&mut codec, &stripe, &[0, 1, 2, 5], &[3, 4]);
    assert_eq!(codec.apply(STAGING_BYTES / 6 + 1, 10), Err(CodecError::TooLarge));
    assert_eq!(codec.apply(usize::MAX, 10), Err(CodecError::TooLarge));
    assert_eq!(codec.apply(100, 37), Err(CodecError::TooLarge));
    assert_eq!(codec.prepare(255, 256), Err(CodecError::TooLarge));
    assert_eq!(codec.prepare(0, 1), Err(CodecError::TooLarge));
    assert_eq!(codec.solve(256, 1), Err(CodecError::DataCountInvalid));
    recover(&mut codec, &stripe, &[0, 1, 2, 5], &[3, 4]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn random_codes_recover_from_random_losses(
        k in 1usize..60,
        m in 1usize..30,
        bytes in 1usize..300,
        seed: u64,
        order in Just((0..90u8).collect::<Vec<u8>>()).prop_shuffle(),
    ) {
        let stripe = stripe(k, m, bytes, seed);
        let order: Vec<u8> = order.into_iter().filter(|&index| (index as usize) < k + m).collect();
        let (kept, lost) = order.split_at(k);
        let mut kept = kept.to_vec();
        kept.sort_unstable();
        recover(&mut Box::new(Codec::new()), &stripe, &kept, lost);
    }
}
