//! BLAKE3 by block, such that the hashes of blocks give the hash of all.
//!
//! BLAKE3 is a tree over chunks of 1024 bytes. A block whose length is a power of two is a subtree wherever it starts at a
//! multiple of its length (section 2.1 of its paper), so the hash of a block is the chaining value of its subtree, and the hash
//! of the whole is what these values give when merged: the same that `b3sum` prints.

use blake3::hazmat::{
    ChainingValue, HasherExt, Mode, left_subtree_len, merge_subtrees_non_root, merge_subtrees_root,
};
use blake3::{Hash, Hasher};

/// Bytes of a block; only the last one is shorter. A power of two.
pub const BLOCK: u64 = 4 << 20;

/// The number of blocks of so many bytes.
pub fn blocks(size: u64) -> u64 {
    size.div_ceil(BLOCK)
}

/// The bytes of a block of `size` bytes.
pub fn length(size: u64, block: u64) -> u64 {
    BLOCK.min(size - block * BLOCK)
}

/// The hash of the block with this number, which is not empty.
pub fn of(block: u64, data: &[u8]) -> ChainingValue {
    Hasher::new().set_input_offset(block * BLOCK).update(data).finalize_non_root()
}

/// The hash of `size` bytes from those of their blocks, of which there are at least two: the root of a tree is hashed in another
/// way than its subtrees.
pub fn whole(size: u64, blocks: &[ChainingValue]) -> Hash {
    let left = left_subtree_len(size);
    let (before, after) = blocks.split_at((left / BLOCK) as usize);
    merge_subtrees_root(&subtree(left, before), &subtree(size - left, after), Mode::Hash)
}

/// The depth is the logarithm of the number of blocks.
fn subtree(size: u64, blocks: &[ChainingValue]) -> ChainingValue {
    if let [one] = blocks {
        return *one;
    }
    let left = left_subtree_len(size);
    let (before, after) = blocks.split_at((left / BLOCK) as usize);
    merge_subtrees_non_root(&subtree(left, before), &subtree(size - left, after), Mode::Hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hashes_of_blocks_give_that_of_the_whole() {
        let data: Vec<u8> = (0..5 * BLOCK as u32 + 4321).map(|at| (at ^ (at >> 9)) as u8).collect();
        for size in [BLOCK + 1, 2 * BLOCK, 3 * BLOCK - 1, 5 * BLOCK + 4321] {
            let data = &data[..size as usize];
            let hashes: Vec<_> =
                data.chunks(BLOCK as usize).enumerate().map(|(block, data)| of(block as u64, data)).collect();
            assert_eq!(hashes.len() as u64, blocks(size));
            assert_eq!(whole(size, &hashes), blake3::hash(data), "{size}");
        }
    }
}
