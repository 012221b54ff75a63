// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From the words of a command to knobs and values.

use ibmgr_api::{Assignment, Channel, Key, LinkName, PlanError};

use crate::error::Error;

/// A set as it was asked for.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) link: LinkName,
    /// What can be asked for.
    pub(crate) wants: Vec<Assignment>,
    /// What cannot: the words are all read, so that all that is wrong is told at once.
    pub(crate) flaws: Vec<Flaw>,
    pub(crate) via: Option<Channel>,
}

/// What is wrong with one word.
#[derive(Debug)]
pub(crate) struct Flaw {
    /// The knob, when that much is right.
    pub(crate) key: Option<Key>,
    pub(crate) error: Error,
}

impl Request {
    /// Reads `KNOB=VALUE` words.
    ///
    /// # Errors
    ///
    /// `link` can name no interface. Flaws of single words are kept in the request.
    pub(crate) fn parse(link: &str, words: &[String], via: Option<Channel>) -> Result<Self, Error> {
        let mut request = Self {
            link: link.parse()?,
            wants: Vec::with_capacity(words.len()),
            flaws: Vec::new(),
            via,
        };
        for word in words {
            match assignment(word) {
                Ok(want) => request.wants.push(want),
                Err(flaw) => request.flaws.push(*flaw),
            }
        }
        Ok(request)
    }
}

impl Flaw {
    /// Returns what is wrong, without the knob's name.
    pub(crate) fn why(&self) -> String {
        match &self.error {
            Error::Value { source, .. } => source.to_string(),
            Error::Plan(error) => error.why(),
            error => error.to_string(),
        }
    }
}

impl From<PlanError> for Flaw {
    fn from(error: PlanError) -> Self {
        Self {
            key: Some(error.key().clone()),
            error: error.into(),
        }
    }
}

fn assignment(word: &str) -> Result<Assignment, Box<Flaw>> {
    let flaw = |key, error| Box::new(Flaw { key, error });
    let Some((name, text)) = word.split_once('=') else {
        let error = format!("'{word}' has no value; write KNOB=VALUE");
        return Err(flaw(word.parse().ok(), Error::Usage(error)));
    };
    if name.is_empty() {
        let error = format!("'{word}' names no knob; write KNOB=VALUE");
        return Err(flaw(None, Error::Usage(error)));
    }
    let key: Key = name
        .parse()
        .map_err(|error| flaw(None, Error::Key(error)))?;
    match key.knob().domain.parse(text) {
        Ok(value) => Ok(Assignment { key, value }),
        Err(source) => Err(flaw(Some(key.clone()), Error::Value { key, source })),
    }
}

/// Reads names of knobs; naming one twice is naming it once.
pub(crate) fn keys(names: &[String]) -> Result<Vec<Key>, Error> {
    let mut keys: Vec<Key> = Vec::with_capacity(names.len());
    for name in names {
        let key = name.parse()?;
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use ibmgr_api::ErrorCode;

    use super::*;

    fn flaw(word: &str) -> (ErrorCode, String) {
        let flaw = assignment(word).expect_err(word);
        (flaw.error.code(), flaw.why())
    }

    #[test]
    fn words_are_knob_and_value() {
        for word in [
            "mtu=2044",
            "rx-usecs=20us",
            "alias=",
            "alias=a=b",
            "feature.rx-gro=off",
        ] {
            assert!(assignment(word).is_ok(), "{word}");
        }
    }

    #[test]
    fn each_flaw_has_its_code() {
        for word in ["mtu", "=5", "", "mtu 5", "=", "mtu:5"] {
            assert_eq!(flaw(word).0, ErrorCode::Usage, "{word}");
        }
        for word in ["mtuu=5", "feature=on", "MTU=5", "mtu =5", "feature.=on"] {
            assert_eq!(flaw(word).0, ErrorCode::UnknownKnob, "{word}");
        }
        for word in [
            "mtu=",
            "mtu=many",
            "mtu=-5",
            "mtu= 5",
            "rx-usecs=20B",
            "state=sideways",
        ] {
            assert_eq!(flaw(word).0, ErrorCode::BadValue, "{word}");
        }
        assert!(flaw("mtuu=5").1.contains("did you mean mtu?"));
        assert!(flaw("rx-usecs=20B").1.contains("has the unit 'B'"));
    }

    #[test]
    fn all_flaws_of_a_request_are_kept() {
        let words = ["mtu=x", "txqueuelen=9", "nope=1"].map(str::to_owned);
        let request = Request::parse("ib0", &words, None).unwrap();
        assert_eq!((request.wants.len(), request.flaws.len()), (1, 2));
        assert!(Request::parse("a/b", &words, None).is_err());
    }
}
