//! Sequence numbers: 32 bits that wrap on the wire, 64-bit offsets internally.

/// The offset nearest to `near` whose low 32 bits, counted from `origin`, are `wire`.
///
/// The two ends are never more than 2^31 bytes apart (RFC 7323 limits windows to 2^30), so the nearest offset
/// is the correct one. Numbers from before offset zero give zero.
pub fn expand(wire: u32, origin: u32, near: u64) -> u64 {
    let distance = wire.wrapping_sub(origin).wrapping_sub(near as u32).cast_signed();
    (near.cast_signed() + i64::from(distance)).max(0).cast_unsigned()
}

/// The sequence number on the wire for `offset`, counted from `origin`.
pub fn wire(offset: u64, origin: u32) -> u32 {
    origin.wrapping_add(offset as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_offset_survives_the_wire(origin: u32, near in 0u64..1 << 40, distance in -(1i64 << 30)..1 << 30) {
            let offset = near.saturating_add_signed(distance);
            prop_assert_eq!(expand(wire(offset, origin), origin, near), offset);
        }
    }
}
