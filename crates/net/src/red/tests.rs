//! RED: its average, its curve, the spacing of its drops.

use super::*;
use crate::packet::Ecn;
use crate::testing::{Parcel, parcel};
use crate::waiting::Waiting;
use elephan_units::Seed;

fn busy(packets: u64, now: Time) -> Moment {
    Moment {
        now,
        waiting: Waiting { packets, bytes: packets * 1500 },
        busy_until: now + Time::from_millis(1),
    }
}

fn state(red: &Red) -> RedState {
    // 12 Mbit/s: 1000 packets a second.
    RedState::new(red, Rate::from_bits_per_sec(12_000_000), Seed::new(1).stream("test", 0))
}

#[test]
fn the_average_moves_by_w_q_and_decays_while_idle() {
    let mut red = state(&Red { w_q: Some(0.25), min_th: Some(100.0), max_th: Some(200.0), ..Red::default() });
    red.judge(&parcel(0), &busy(8, Time::ZERO));
    assert_eq!(red.average(), 2.0);
    red.judge(&parcel(1), &busy(4, Time::ZERO));
    assert_eq!(red.average(), 2.5);
    // Idle for 2 ms, in which two packets could have been sent: (3/4)^2.
    let idle =
        Moment { now: Time::from_millis(12), waiting: Waiting::default(), busy_until: Time::from_millis(10) };
    red.judge(&parcel(2), &idle);
    assert!((red.average() - 2.5 * 0.5625).abs() < 1e-12);
}

#[test]
fn automatic_settings_are_the_authors() {
    // 120 Mbit/s: 10 000 packets a second, 50 in 5 ms.
    let red =
        RedState::new(&Red::default(), Rate::from_bits_per_sec(120_000_000), Seed::new(1).stream("test", 0));
    assert_eq!((red.curve.min_th, red.curve.max_th), (25.0, 75.0));
    assert!((red.average.w_q - 9.9995e-5).abs() < 1e-9);
    // At 1.2 Mbit/s the result is half a packet: the lower bound of the minimum applies.
    let slow =
        RedState::new(&Red::default(), Rate::from_bits_per_sec(1_200_000), Seed::new(1).stream("test", 0));
    assert_eq!((slow.curve.min_th, slow.curve.max_th), (5.0, 15.0));
}

#[test]
fn the_curve_is_linear_then_gentle_or_steep() {
    let curve = Curve { min_th: 5.0, max_th: 15.0, max_p: 0.1, gentle: true };
    for (average, expected) in [(4.9, 0.0), (5.0, 0.0), (10.0, 0.05), (15.0, 0.1), (22.5, 0.55)] {
        let found = curve.at(average).unwrap();
        assert!((found - expected).abs() < 1e-12, "{average}: {found}");
    }
    assert_eq!(curve.at(30.0), None);
    assert_eq!(Curve { gentle: false, ..curve }.at(15.0), None);
}

/// Distances between drops at a steady average of 10, where p_b = 0.05.
fn gaps(wait: bool) -> Vec<u32> {
    let red = Red { w_q: Some(1.0), min_th: Some(5.0), max_th: Some(15.0), wait, ..Red::default() };
    let mut red = state(&red);
    let (mut gaps, mut gap) = (Vec::new(), 0);
    let plain = Parcel { ecn: Ecn::NotCapable, ..parcel(0) };
    for _ in 0..200_000 {
        gap += 1;
        if red.judge(&plain, &busy(10, Time::ZERO)) == Verdict::Drop {
            gaps.push(std::mem::take(&mut gap));
        }
    }
    gaps.remove(0);
    gaps
}

#[test]
fn drops_are_spread_uniformly() {
    // Floyd and Jacobson 1993, section 7: uniform distances. As their figure 2 counts, from 1 to 1/p_b - 1, here 19; with
    // wait from 1/p_b to 2/p_b - 1.
    for (wait, least, most) in [(false, 1, 19), (true, 20, 39)] {
        let gaps = gaps(wait);
        assert!(gaps.iter().all(|gap| (least..=most).contains(gap)), "{:?}", gaps.iter().max());
        let mean = gaps.iter().sum::<u32>() as f64 / gaps.len() as f64;
        let expected = f64::from(least + most) / 2.0;
        assert!((mean - expected).abs() < 0.3, "wait {wait}: {mean}");
    }
}

#[test]
fn capable_packets_are_marked_until_all_are_dropped() {
    let red = Red { w_q: Some(1.0), min_th: Some(1.0), max_th: Some(2.0), max_p: 1.0, ..Red::default() };
    let mut red = state(&Red { wait: false, ..red });
    let verdicts: Vec<Verdict> = (0..50).map(|_| red.judge(&parcel(0), &busy(3, Time::ZERO))).collect();
    assert!(verdicts.iter().all(|&verdict| verdict == Verdict::Mark));
    assert_eq!(red.judge(&parcel(0), &busy(4, Time::ZERO)), Verdict::Drop);
}

#[test]
fn in_bytes_a_small_packet_is_dropped_less_often() {
    let red = Red {
        bytes: true,
        w_q: Some(1.0),
        min_th: Some(5.0),
        max_th: Some(15.0),
        wait: false,
        ..Red::default()
    };
    let share = |bytes: u32| {
        let mut red = state(&red);
        let packet = Parcel { bytes, ..parcel(0) };
        let marked = (0..100_000).filter(|_| red.judge(&packet, &busy(10, Time::ZERO)) == Verdict::Mark);
        marked.count() as f64 / 1e5
    };
    // p_b = 0.05 for 1500 bytes: every 10th on average. For 150 bytes 0.005: every 100th.
    assert!((share(1500) - 0.1).abs() < 0.003, "{}", share(1500));
    assert!((share(150) - 0.01).abs() < 0.001, "{}", share(150));
}
