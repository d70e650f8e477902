//! BLAKE3 by block, such that the hashes of the blocks of a file give the hash of the file.
//!
//! BLAKE3 is a tree over chunks of 1024 bytes. A block whose length is a power of two is a subtree wherever it starts at a
//! multiple of its length (section 2.1 of its paper), so the hash of a block is the chaining value of its subtree, and the hash
//! of the file is what these values give when merged: the same that `b3sum` prints.

use blake3::Hasher;
use blake3::hazmat::{
    ChainingValue, HasherExt, Mode, left_subtree_len, merge_subtrees_non_root, merge_subtrees_root,
};

/// Bytes of a block; only the last one of a file is shorter. A power of two.
pub const BLOCK: u64 = 4 << 20;
/// Zeros that stand for the holes of a file.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// The number of blocks of a file with this number of bytes.
pub fn blocks(size: u64) -> u64 {
    size.div_ceil(BLOCK)
}

/// The bytes of a block of a file with `size` bytes.
pub fn length(size: u64, block: u64) -> u64 {
    BLOCK.min(size - block * BLOCK)
}

/// Hashes a block of a file, which has at least two.
pub struct BlockHasher(Hasher);

impl BlockHasher {
    /// For the block with this number.
    pub fn new(block: u64) -> Self {
        let mut hasher = Hasher::new();
        hasher.set_input_offset(block * BLOCK);
        Self(hasher)
    }

    /// Adds data.
    pub fn data(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    /// Adds a hole.
    pub fn hole(&mut self, mut bytes: u64) {
        while bytes > 0 {
            let part = bytes.min(ZEROS.len() as u64);
            self.0.update(&ZEROS[..part as usize]);
            bytes -= part;
        }
    }

    /// The hash.
    pub fn finish(&self) -> ChainingValue {
        self.0.finalize_non_root()
    }
}

/// The hash of a file of `size` bytes, from those of its blocks, of which it has at least two.
pub fn whole(size: u64, blocks: &[ChainingValue]) -> blake3::Hash {
    let left = left_subtree_len(size);
    let (first, second) = blocks.split_at((left / BLOCK) as usize);
    merge_subtrees_root(&subtree(left, first), &subtree(size - left, second), Mode::Hash)
}

/// The depth is the logarithm of the number of blocks.
fn subtree(size: u64, blocks: &[ChainingValue]) -> ChainingValue {
    if let [one] = blocks {
        return *one;
    }
    let left = left_subtree_len(size);
    let (first, second) = blocks.split_at((left / BLOCK) as usize);
    merge_subtrees_non_root(&subtree(left, first), &subtree(size - left, second), Mode::Hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hashes_of_blocks_give_that_of_the_file() {
        let data: Vec<u8> = (0..5 * BLOCK as u32 + 4321).map(|at| (at ^ (at >> 9)) as u8).collect();
        for size in [BLOCK + 1, 2 * BLOCK, 3 * BLOCK - 1, 5 * BLOCK + 4321] {
            let of = |(block, data): (usize, &[u8])| {
                let mut hasher = BlockHasher::new(block as u64);
                hasher.data(data);
                hasher.finish()
            };
            let data = &data[..size as usize];
            let hashes: Vec<_> = data.chunks(BLOCK as usize).enumerate().map(of).collect();
            assert_eq!(hashes.len() as u64, blocks(size));
            assert_eq!(whole(size, &hashes), blake3::hash(data), "{size}");
        }
    }

    #[test]
    fn a_hole_hashes_as_zeros() {
        let (mut holes, mut zeros) = (BlockHasher::new(3), BlockHasher::new(3));
        holes.hole(100_001);
        zeros.data(&vec![0; 100_001]);
        assert_eq!(holes.finish(), zeros.finish());
    }
}
