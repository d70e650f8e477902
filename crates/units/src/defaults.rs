/// Declares a struct, with the default of each field beside its type.
///
/// ```
/// elephan_units::with_defaults! {
///     /// A buffer.
///     pub struct Buffer {
///         /// Its size in packets.
///         pub packets: u64 = 100,
///     }
/// }
/// assert_eq!(Buffer::default().packets, 100);
/// ```
#[macro_export]
macro_rules! with_defaults {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$about:meta])* $visible:vis $field:ident: $type:ty = $default:expr,)*
    }) => {
        $(#[$meta])*
        pub struct $name { $($(#[$about])* $visible $field: $type,)* }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }
    };
}
