//! What every table that puts traffic on the network has: how many alike, where, and until when.

use elephan_units::Time;

/// What a flow of any kind says of its way.
pub(crate) struct Place<'a> {
    pub rtt: Option<Time>,
    pub from: Option<&'a str>,
    pub to: Option<&'a str>,
    pub reverse: bool,
}

/// The same of any such table.
pub(crate) struct Common<'a> {
    pub count: u64,
    pub label: Option<&'a str>,
    pub stop: Option<Time>,
    pub dscp: u8,
    pub place: Place<'a>,
}

/// Declares such a table: its own keys, and after them those that all have. `serde(flatten)` would do, but for
/// `deny_unknown_fields`, which it does not go with, and for errors, which would no longer name the key.
macro_rules! traffic {
    ($(#[$meta:meta])* pub struct $name:ident { $($own:tt)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($own)*
            /// Number of identical copies.
            #[serde(default = "crate::file::one")]
            pub count: u64,
            /// Name in tables and plots; by default the algorithm's name, or the kind of traffic.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub label: Option<String>,
            /// Time after which nothing new is started; by default never.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub stop: Option<elephan_units::Time>,
            /// Round-trip time without queueing, if it differs from the path's.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub rtt: Option<elephan_units::Time>,
            /// Node of the data senders, with `link`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub from: Option<String>,
            /// Node of the data receivers, with `link`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub to: Option<String>,
            /// The codepoint of packets in both directions: `"ef"`, `"af41"`, `"be"` or a number.
            #[serde(default)]
            pub dscp: elephan_net::Dscp,
            /// Whether data cross the dumbbell in the reverse direction.
            #[serde(default)]
            pub reverse: bool,
        }

        impl $name {
            pub(crate) fn common(&self) -> $crate::file::traffic::Common<'_> {
                $crate::file::traffic::Common {
                    count: self.count,
                    label: self.label.as_deref(),
                    stop: self.stop,
                    dscp: self.dscp.get(),
                    place: $crate::file::traffic::Place {
                        rtt: self.rtt,
                        from: self.from.as_deref(),
                        to: self.to.as_deref(),
                        reverse: self.reverse,
                    },
                }
            }
        }
    };
}
pub(crate) use traffic;
