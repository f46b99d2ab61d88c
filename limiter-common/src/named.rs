//! Enums that index an array of counters and have a name in status, metrics and logs.

/// Declares an enum numbered from 0, with `COUNT`, `ALL` and `name()`.
macro_rules! named_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $( $(#[$variant_meta:meta])* $variant:ident = $text:literal, )+
        }
    ) => {
        $(#[$meta])*
        #[repr(u8)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $( $(#[$variant_meta])* $variant, )+
        }

        impl $name {
            /// All of them, by number.
            pub const ALL: [Self; Self::COUNT] = [$( Self::$variant ),+];

            /// How many there are.
            pub const COUNT: usize = [$( $text ),+].len();

            /// The one with this number, if there is one.
            #[inline(always)]
            #[must_use]
            pub fn from_number(number: u32) -> Option<Self> {
                let number = $crate::opaque::opaque(number.into());
                Self::ALL.get(number as usize).copied()
            }

            /// The name in status, metrics and logs.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $( Self::$variant => $text, )+
                }
            }
        }
    };
}

pub(crate) use named_enum;
