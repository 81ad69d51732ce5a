//! reed-solomon-erasure's `galois_8` with shards that lie in WASM memory already: nothing but the crate's own work.

use reed_solomon_erasure::galois_8::ReedSolomon;

pub struct Stripe {
    code: ReedSolomon,
    shards: Vec<(Vec<u8>, bool)>,
}

#[unsafe(no_mangle)]
pub extern "C" fn stripe(k: usize, m: usize, shard_bytes: usize) -> *mut Stripe {
    let code = ReedSolomon::new(k, m).expect("a valid code");
    let shards = (0..k + m).map(|_| (vec![0; shard_bytes], true)).collect();
    Box::into_raw(Box::new(Stripe { code, shards }))
}

/// # Safety
/// `stripe` comes from [`stripe`], as in the other functions, and no other reference to it is alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shard(stripe: *mut Stripe, index: usize) -> *mut u8 {
    unsafe { (&mut *stripe).shards[index].0.as_mut_ptr() }
}

/// # Safety
/// As for [`shard`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn encode(stripe: *mut Stripe) {
    let stripe = unsafe { &mut *stripe };
    let k = stripe.code.data_shard_count();
    let (data, parity) = stripe.shards.split_at_mut(k);
    let data: Vec<&[u8]> = data.iter().map(|(bytes, _)| bytes.as_slice()).collect();
    let mut parity: Vec<&mut [u8]> = parity.iter_mut().map(|(bytes, _)| bytes.as_mut_slice()).collect();
    stripe.code.encode_sep(&data, &mut parity).expect("shards of one length");
}

/// Recovers the first `lost` data shards.
///
/// # Safety
/// As for [`shard`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reconstruct(stripe: *mut Stripe, lost: usize) {
    let stripe = unsafe { &mut *stripe };
    for (index, shard) in stripe.shards.iter_mut().enumerate() {
        shard.1 = index >= lost;
    }
    stripe.code.reconstruct_data(&mut stripe.shards).expect("enough shards");
}
