//! The file of vectors on the disk, for one endpoint and model; its content is not trusted.
//!
//! ```text
//! magic, endpoint and model (32), dimension (4), count (4), count × (text (32), floats), hash (32)
//! ```
//!
//! All functions block. None fails: an unusable file counts as missing, and the endpoint is asked
//! for missing vectors again.

use std::{collections::HashMap, path::Path};

use super::{
    text_hash::TextDigest,
    vector_table::{UnitVector, normalised},
};
use crate::{config::defaults, files};

/// The beginning of the file. Another format gets another number.
const MAGIC: &[u8; 18] = b"metamcp vectors 1\n";

/// The size of a number, in bytes.
const FLOAT: usize = size_of::<f32>();

/// The largest file, in bytes: the vectors, a last batch that may exceed the bound, and the frame.
const FILE_BYTES_MAX: usize = defaults::EMBEDDING_BYTES_MAX
    + defaults::EMBEDDING_BATCH_TEXTS_MAX
        * (TextDigest::BYTES + defaults::EMBEDDING_DIMENSION_MAX * FLOAT)
    + 4096;

/// The defects of a file.
const CHECKSUM: &str = "its checksum is wrong";
const SHAPE: &str = "its checksum is right, but its content is malformed";

/// Reads the vectors of `space` from the disk, if there are any.
pub(super) fn read(path: &Path, space: TextDigest) -> HashMap<TextDigest, UnitVector> {
    let reason = match files::content(path, FILE_BYTES_MAX) {
        Ok(None) => return HashMap::new(),
        Ok(Some(bytes)) => match parse(&bytes, space) {
            Ok(vectors) => return vectors,
            Err(reason) => reason.to_owned(),
        },
        Err(error) => error.to_string(),
    };
    let path = path.display();
    tracing::warn!(%path, reason, "cached embeddings in `{path}` ignored: {reason}");
    HashMap::new()
}

pub(super) fn write(path: &Path, space: TextDigest, vectors: &HashMap<TextDigest, UnitVector>) {
    let n_vectors = vectors.len();
    let replaced = files::replace(path, &text(space, vectors));
    let path = path.display();
    match replaced {
        Ok(()) => tracing::debug!(%path, n_vectors, "embeddings cached in `{path}`"),
        Err(error) => tracing::warn!(%path, %error, "embeddings not cached in `{path}`: {error}"),
    }
}

fn text(space: TextDigest, vectors: &HashMap<TextDigest, UnitVector>) -> Vec<u8> {
    let dimension = vectors.values().next().map_or(0, |vector| vector.len());
    let mut bytes = Vec::with_capacity(
        MAGIC.len()
            + 2 * TextDigest::BYTES
            + 8
            + vectors.len() * (TextDigest::BYTES + dimension * FLOAT),
    );
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&space.0);
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes();
    bytes.extend_from_slice(&number(dimension));
    bytes.extend_from_slice(&number(vectors.len()));
    for (digest, vector) in vectors {
        bytes.extend_from_slice(&digest.0);
        bytes.extend(vector.iter().flat_map(|x| x.to_le_bytes()));
    }
    let checksum = TextDigest::of(&[&bytes]);
    bytes.extend_from_slice(&checksum.0);
    bytes
}

fn parse(bytes: &[u8], space: TextDigest) -> Result<HashMap<TextDigest, UnitVector>, &'static str> {
    let (body, checksum) = bytes.split_last_chunk::<{ TextDigest::BYTES }>().ok_or(CHECKSUM)?;
    if TextDigest::of(&[body]).0 != *checksum {
        return Err(CHECKSUM);
    }
    // A checksum detects accidents, but no forgery, so every length is checked.
    let Some(rest) = body.strip_prefix(MAGIC) else { return Err(SHAPE) };
    let (found, rest) = rest.split_first_chunk::<{ TextDigest::BYTES }>().ok_or(SHAPE)?;
    if *found != space.0 {
        // The vectors of another model are useless.
        return Ok(HashMap::new());
    }
    let (dimension, rest) = rest.split_first_chunk().ok_or(SHAPE)?;
    let (number, rest) = rest.split_first_chunk().ok_or(SHAPE)?;
    let (dimension, number) =
        (u32::from_le_bytes(*dimension) as usize, u32::from_le_bytes(*number) as usize);
    if dimension > defaults::EMBEDDING_DIMENSION_MAX {
        return Err(SHAPE);
    }
    let length = TextDigest::BYTES + dimension * FLOAT;
    if number.checked_mul(length) != Some(rest.len()) {
        return Err(SHAPE);
    }
    rest.chunks_exact(length)
        .map(|record| {
            let (digest, numbers) = record.split_first_chunk().ok_or(SHAPE)?;
            let (numbers, _) = numbers.as_chunks::<FLOAT>();
            let numbers: Vec<f32> = numbers.iter().map(|x| f32::from_le_bytes(*x)).collect();
            Ok((TextDigest(*digest), normalised(&numbers).ok_or(SHAPE)?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::{collection::vec, prelude::*};

    use super::*;

    const SPACE: TextDigest = TextDigest([7; TextDigest::BYTES]);

    fn some() -> HashMap<TextDigest, UnitVector> {
        let vector = |numbers: &[f32]| normalised(numbers).expect("a direction");
        HashMap::from([
            (TextDigest([1; TextDigest::BYTES]), vector(&[1.0, 2.0, -3.0])),
            (TextDigest([2; TextDigest::BYTES]), vector(&[0.5, 0.0, 1e-3])),
        ])
    }

    fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
        bytes.truncate(bytes.len() - TextDigest::BYTES);
        let checksum = TextDigest::of(&[&bytes]);
        bytes.extend_from_slice(&checksum.0);
        bytes
    }

    #[test]
    fn a_vector_file_is_read_back_for_its_own_model_only() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("vectors");
        assert_eq!(read(&path, SPACE), HashMap::new());
        write(&path, SPACE, &some());
        let found = read(&path, SPACE);
        assert_eq!(found.len(), 2);
        for (digest, vector) in some() {
            let close = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-6;
            assert!(found[&digest].iter().zip(vector.iter()).all(close), "{digest:?}");
        }
        assert_eq!(read(&path, TextDigest([8; TextDigest::BYTES])), HashMap::new());
        write(&path, SPACE, &HashMap::new());
        assert_eq!(read(&path, SPACE), HashMap::new());
    }

    #[test]
    fn a_damaged_vector_file_is_ignored() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("vectors");
        let whole = text(SPACE, &some());
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(&path, &bytes).expect("written");
            assert_eq!(read(&path, SPACE), HashMap::new(), "{at}");
            fs::write(&path, &whole[..at]).expect("written");
            assert_eq!(read(&path, SPACE), HashMap::new(), "{at}");
        }
    }

    #[test]
    fn a_vector_file_with_false_lengths_is_ignored() {
        let whole = text(SPACE, &some());
        let dimension = MAGIC.len() + TextDigest::BYTES;
        for (at, value) in [
            (dimension, u32::MAX),
            (dimension, 0),
            (dimension, 4),
            (dimension + 4, u32::MAX),
            (dimension + 4, 1),
        ] {
            let mut bytes = whole.clone();
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            assert_eq!(parse(&sealed(bytes), SPACE), Err(SHAPE), "{at} {value}");
        }
        let mut nan = whole.clone();
        let number = dimension + 8 + TextDigest::BYTES;
        nan[number..number + 4].copy_from_slice(&f32::NAN.to_le_bytes());
        assert_eq!(parse(&sealed(nan), SPACE), Err(SHAPE));
    }

    proptest! {
        #[test]
        fn no_content_of_a_vector_file_causes_a_panic(bytes in vec(any::<u8>(), 0..400), is_ours: bool) {
            let mut all = if is_ours { text(SPACE, &some())[..58].to_vec() } else { Vec::new() };
            all.extend(bytes);
            all.extend([0; TextDigest::BYTES]);
            let _any = parse(&sealed(all), SPACE);
        }
    }
}
