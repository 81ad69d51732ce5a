//! Why a matrix could not be made. The numbers cross the WASM boundary; the TypeScript face checks its arguments first,
//! so a caller of the package sees these only through a defect of ours.

use reed_solomon_erasure::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum CodecError {
    /// k is 0 or more than 255.
    DataCountInvalid = 1,
    /// An index is 256 or more, or doubled, or the number of present shards is not k.
    IndicesInvalid = 2,
    /// The matrix, the shards or the tables do not fit in the codec's fixed memory.
    TooLarge = 3,
    /// reed-solomon-erasure refused.
    Crate = 4,
}

impl From<Error> for CodecError {
    fn from(_: Error) -> Self {
        CodecError::Crate
    }
}
