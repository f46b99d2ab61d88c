//! Values in JSON as the text that people write: `#[serde(with = "text")]`.

use std::{fmt::Display, str::FromStr};

use serde::{Deserialize as _, Deserializer, de::Error as _};

/// Reads the text.
///
/// # Errors
///
/// Where the value cannot be read from it.
pub fn deserialize<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    let text = String::deserialize(from)?;
    text.parse().map_err(D::Error::custom)
}

/// The same for values that may be missing or null.
pub mod option {
    use std::{fmt::Display, str::FromStr};

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer, de::Error as _};

    /// Writes the text.
    ///
    /// # Errors
    ///
    /// Where the serializer fails.
    pub fn serialize<S: Serializer, T: Display>(
        value: &Option<T>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        value.as_ref().map(T::to_string).serialize(to)
    }

    /// Reads the text, if any.
    ///
    /// # Errors
    ///
    /// Where the value cannot be read from it.
    pub fn deserialize<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
    where
        D: Deserializer<'de>,
        T: FromStr<Err: Display>,
    {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| text.parse().map_err(D::Error::custom))
            .transpose()
    }
}
