//! GF(2^8) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11D): the field of reed-solomon-erasure's `galois_8`, of
//! klauspost/reedsolomon and of ISA-L, as log and exp tables (768 bytes instead of a 64 KiB product table that does not
//! compress). It serves matrices only; bulk data goes through [`crate::kernel`].

use reed_solomon_erasure::Field;

const POLYNOMIAL: u16 = 0x11D;
const LOG_EXP: ([u8; 256], [u8; 510]) = log_exp();
static LOG: [u8; 256] = LOG_EXP.0;
/// Twice the period, so that a sum of two logarithms needs no modulo.
static EXP: [u8; 510] = LOG_EXP.1;

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
        if a == 0 { 0 } else { EXP[LOG[a as usize] as usize + 255 - LOG[b as usize] as usize] }
    }

    fn exp(a: u8, n: usize) -> u8 {
        match (a, n) {
            (_, 0) => 1,
            (0, _) => 0,
            _ => EXP[(LOG[a as usize] as usize * n) % 255],
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

/// The product of two field elements.
pub fn mul(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 { 0 } else { EXP[LOG[a as usize] as usize + LOG[b as usize] as usize] }
}

const fn log_exp() -> ([u8; 256], [u8; 510]) {
    let (mut log, mut exp) = ([0u8; 256], [0u8; 510]);
    let (mut power, mut i) = (1u16, 0);
    while i < 255 {
        exp[i] = power as u8;
        exp[i + 255] = power as u8;
        log[power as usize] = i as u8;
        power <<= 1;
        if power & 0x100 != 0 {
            power ^= POLYNOMIAL;
        }
        i += 1;
    }
    (log, exp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reed_solomon_erasure::galois_8;

    #[test]
    fn every_product_and_quotient_equals_the_reference_field() {
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
        for a in 0..=255u8 {
            for n in 0..=300 {
                assert_eq!(Gf256::exp(a, n), galois_8::exp(a, n), "{a} ^ {n}");
            }
        }
    }
}
