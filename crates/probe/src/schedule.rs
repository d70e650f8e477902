//! When the datagrams of a stream are due, and whether the schedule keeps to the agreed rate.

/// Checks a schedule: as many sizes (bytes of IP packets) as times (ns since its start), in order, and no packet earlier than the
/// one before it has passed at `rate` (bit/s). Says what is wrong.
pub fn check(sizes: &[u32], due_ns: &[u64], rate: u64) -> Result<(), String> {
    if sizes.len() != due_ns.len() || sizes.is_empty() {
        return Err(format!(
            "stream: expected as many sizes as times, found {} and {}",
            sizes.len(),
            due_ns.len()
        ));
    }
    for (index, pair) in due_ns.windows(2).enumerate() {
        if pair[1] < pair[0] {
            return Err(format!("stream: expected times in order, found {} after {}", pair[1], pair[0]));
        }
        let gap = pair[1] - pair[0];
        if gap < passing_ns(sizes[index], rate) {
            return Err(format!(
                "stream: expected at most {rate} bit/s, found {} bytes in {gap} ns",
                sizes[index]
            ));
        }
    }
    Ok(())
}

/// The time in which a packet passes at a rate, ns, rounded down; zero without a limit.
pub fn passing_ns(bytes: u32, rate: u64) -> u64 {
    let nanos = u128::from(bytes) * 8_000_000_000 / u128::from(rate.max(1));
    u64::try_from(nanos).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{check, passing_ns};

    #[test]
    fn a_packet_passes_in_its_time() {
        assert_eq!(passing_ns(1500, 12_000_000), 1_000_000);
        assert_eq!(passing_ns(1500, u64::MAX), 0);
        assert_eq!(passing_ns(1500, 0), 12_000_000_000_000);
    }

    proptest! {
        #[test]
        fn a_paced_schedule_is_accepted_and_a_faster_one_is_not(
            sizes in prop::collection::vec(28_u32..9000, 2..50), rate in 1_000_u64..1_000_000_000,
        ) {
            let mut at = 0;
            let due: Vec<u64> = sizes.iter().map(|&size| { let due = at; at += passing_ns(size, rate); due }).collect();
            prop_assert!(check(&sizes, &due, rate).is_ok());
            let last = due.len() - 1;
            let mut hurried = due.clone();
            hurried[last] -= 1;
            prop_assert!(check(&sizes, &hurried, rate).is_err());
            // Never more than the rate, but for the part of a nanosecond by which the time of each packet is rounded down.
            let bits: u128 = sizes[..last].iter().map(|&size| u128::from(size) * 8).sum();
            let longest_ns = u128::from(due[last]) + last as u128;
            prop_assert!(bits * 1_000_000_000 <= u128::from(rate) * longest_ns);
        }

        #[test]
        fn any_schedule_is_judged(sizes: Vec<u32>, due: Vec<u64>, rate: u64) {
            let _ = check(&sizes, &due, rate);
        }
    }
}
