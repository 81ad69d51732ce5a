//! GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11D): the field of reed-solomon-erasure's `galois_8`, of
//! klauspost/reedsolomon and of ISA-L, as log and exp tables (768 bytes instead of a 64 KiB product table). It serves
//! matrices only; bulk data goes through the kernels.
//!
//! [`prepare_tables`] computes the tables at run time. As constants they would be a tenth of the compressed module,
//! because their bytes do not compress, and the only reason for it to carry data at all.

use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use reed_solomon_erasure::Field;

const POLYNOMIAL: u16 = 0x11D;

struct Tables {
    log: [AtomicU8; 256],
    /// Twice the period, so that a sum of two logarithms needs no modulo.
    exp: [AtomicU8; 510],
    ready: AtomicBool,
}

/// Atomic because native tests run on several threads; in WebAssembly these are plain loads and stores.
static TABLES: Tables = Tables {
    log: [const { AtomicU8::new(0) }; 256],
    exp: [const { AtomicU8::new(0) }; 510],
    ready: AtomicBool::new(false),
};

fn log(a: u8) -> usize {
    TABLES.log[a as usize].load(Ordering::Relaxed) as usize
}

fn exp(n: usize) -> u8 {
    TABLES.exp[n].load(Ordering::Relaxed)
}

/// The field as reed-solomon-erasure wants it: what makes its `ReedSolomon<F>` ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gf256;

impl Field for Gf256 {
    const ORDER: usize = 256;
    type Elem = u8;

    fn add(a: u8, b: u8) -> u8 {
        a ^ b
    }

    fn mul(a: u8, b: u8) -> u8 {
        mul(a, b)
    }

    fn div(a: u8, b: u8) -> u8 {
        assert!(b != 0, "division by zero in GF(256)");
        if a == 0 { 0 } else { exp(log(a) + 255 - log(b)) }
    }

    fn exp(a: u8, n: usize) -> u8 {
        match (a, n) {
            (_, 0) => 1,
            (0, _) => 0,
            _ => exp((log(a) * n) % 255),
        }
    }

    fn zero() -> u8 {
        0
    }

    fn one() -> u8 {
        1
    }

    fn nth_internal(n: usize) -> u8 {
        n as u8
    }
}

/// The product of two field elements, after [`prepare_tables`].
pub fn mul(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 { 0 } else { exp(log(a) + log(b)) }
}

/// Computes the tables, unless they are there; every other function of this module needs them. Threads that do so at
/// once write the same bytes.
pub fn prepare_tables() {
    if TABLES.ready.load(Ordering::Acquire) {
        return;
    }
    let mut power = 1u16;
    for i in 0..255 {
        TABLES.exp[i].store(power as u8, Ordering::Relaxed);
        TABLES.exp[i + 255].store(power as u8, Ordering::Relaxed);
        TABLES.log[power as usize].store(i as u8, Ordering::Relaxed);
        power <<= 1;
        if power & 0x100 != 0 {
            power ^= POLYNOMIAL;
        }
    }
    TABLES.ready.store(true, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;
    use reed_solomon_erasure::galois_8;

    #[test]
    fn every_product_and_quotient_equals_the_reference_field() {
        prepare_tables();
        for a in 0..=255u8 {
            for b in 0..=255u8 {
                assert_eq!(Gf256::mul(a, b), galois_8::mul(a, b), "{a} * {b}");
                if b != 0 {
                    assert_eq!(Gf256::div(a, b), galois_8::div(a, b), "{a} / {b}");
                }
            }
        }
    }

    #[test]
    fn every_power_equals_the_reference_field() {
        prepare_tables();
        for a in 0..=255u8 {
            for n in 0..=300 {
                assert_eq!(Gf256::exp(a, n), galois_8::exp(a, n), "{a} ^ {n}");
            }
        }
    }
}
