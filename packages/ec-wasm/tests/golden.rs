//! Parities that klauspost/reedsolomon computed (`native/`, `golden/vectors.json`). The TypeScript tests read the same
//! file.

mod common;

use agarose_ec::codec::Codec;
use common::compute;
use serde_json::Value;

#[test]
fn parities_equal_those_of_klauspost_reedsolomon() {
    let document: Value = serde_json::from_str(include_str!("../golden/vectors.json")).unwrap();
    let mut codec = Box::new(Codec::new());
    let mut rows_checked = 0;
    for vector in document["vectors"].as_array().unwrap() {
        let (data, parity) = (shards(&vector["data"]), shards(&vector["parity"]));
        let k = data.len();
        let present: Vec<u8> = (0..k as u8).collect();
        let rows: Vec<u8> = (k..k + parity.len()).map(|row| row as u8).collect();
        let inputs: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
        assert_eq!(compute(&mut codec, &present, &inputs, &rows), Ok(parity), "k = {k}");
        rows_checked += rows.len();
    }
    assert_eq!(rows_checked, 369);
}

fn shards(value: &Value) -> Vec<Vec<u8>> {
    value.as_array().unwrap().iter().map(|text| unhex(text.as_str().unwrap())).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}
