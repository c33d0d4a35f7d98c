use std::error::Error;
use std::fmt;

/// A word that stands for none of the values it was read as.
#[derive(Clone, PartialEq, Eq)]
pub struct UnknownWord {
    /// The word as it was written.
    pub word: String,
    /// What it should have named, for example `scope`.
    pub what: &'static str,
    /// Every word that would have been taken.
    pub allowed: &'static [&'static str],
}

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a {}; allowed: {}", self.word, self.what, self.allowed.join(", "))
    }
}

impl Error for UnknownWord {}

/// Gives a type one word a value, so that what is printed can be read back.
macro_rules! words {
    ($type:ty, $what:literal { $([$($value:tt)+] => $word:literal,)* }) => {
        impl $type {
            /// Every value, in the order of [`Self::WORDS`].
            pub const ALL: &[Self] = &[$($($value)+),*];

            /// The word of each value.
            pub const WORDS: &[&str] = &[$($word),*];
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(match self { $($($value)+ => $word,)* })
            }
        }

        impl std::str::FromStr for $type {
            type Err = crate::UnknownWord;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                match word {
                    $($word => Ok($($value)+),)*
                    _ => Err(crate::UnknownWord {
                        word: word.to_owned(),
                        what: $what,
                        allowed: Self::WORDS,
                    }),
                }
            }
        }
    };
}
pub(crate) use words;
