// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A bar: one figure with its goal, and how it is printed.

use std::fmt;

use serde::Serialize;

use crate::lab::measurements::number;
use crate::wire::Figure;

/// What a figure should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// Not more than this.
    AtMost(f64),
    /// Not less than this.
    AtLeast(f64),
    /// This, give or take so much.
    Near(f64, f64),
    /// Nothing is asked; the figure is for comparing.
    Open,
}

impl Goal {
    /// Says whether a value meets it.
    #[must_use]
    pub fn met(self, value: f64) -> bool {
        match self {
            Self::AtMost(most) => value <= most,
            Self::AtLeast(least) => value >= least,
            Self::Near(wanted, tolerance) => (value - wanted).abs() <= tolerance,
            Self::Open => true,
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(most) => write!(f, "<= {most}"),
            Self::AtLeast(least) => write!(f, ">= {least}"),
            Self::Near(wanted, tolerance) => write!(f, "= {wanted} +- {tolerance}"),
            Self::Open => f.write_str("-"),
        }
    }
}

/// One figure with its goal.
#[derive(Clone, Debug)]
pub struct Bar {
    /// Dotted name; its first word is the case.
    pub name: String,
    /// Our figure.
    pub ours: f64,
    /// What the compared thing has, taken in the same run; none when nothing is compared.
    pub peer: Option<f64>,
    /// What ours should be.
    pub goal: Goal,
    /// Unit of both, `1` for a plain ratio.
    pub unit: String,
}

#[derive(Serialize)]
struct Json<'a> {
    bar: &'a str,
    ours: f64,
    peer: Option<f64>,
    goal: String,
    unit: &'a str,
}

impl Bar {
    /// Prints `BAR name ours=… peer=… goal=… unit=…`, no blanks inside a field.
    #[must_use]
    pub fn line(&self) -> String {
        let peer = self.peer.map_or_else(|| "-".to_owned(), number);
        let goal = self.goal.to_string().replace(' ', "");
        format!(
            "BAR {} ours={} peer={peer} goal={goal} unit={}",
            self.name,
            number(self.ours),
            self.unit
        )
    }

    /// Prints one JSON object; a missing peer is `null`.
    #[must_use]
    pub fn json(&self) -> String {
        let goal = self.goal.to_string();
        let json = Json {
            bar: &self.name,
            ours: self.ours,
            peer: self.peer,
            goal,
            unit: &self.unit,
        };
        // Only a map with keys that aren't text could fail.
        serde_json::to_string(&json).unwrap_or_default()
    }

    /// Returns its figures for the record: ours, and the peer's when there is one.
    #[must_use]
    pub fn figures(&self) -> Vec<Figure> {
        let figure = |name: String, value| Figure {
            name,
            value,
            unit: format!("{}, goal {}", self.unit, self.goal),
        };
        let peer = self
            .peer
            .map(|value| figure(format!("{} (peer)", self.name), value));
        std::iter::once(figure(self.name.clone(), self.ours))
            .chain(peer)
            .collect()
    }
}

/// Returns the middle of some values; of an even number, the mean of the two in the middle.
///
/// None when there are no values.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *sorted.get(middle.checked_sub(1)?)?;
    Some(f64::midpoint(lower, upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar() -> Bar {
        let name = "gso.doorbells_per_packet".to_owned();
        Bar {
            name,
            ours: 0.031,
            peer: Some(1.0),
            goal: Goal::AtMost(0.04),
            unit: "1".into(),
        }
    }

    #[test]
    fn lines_have_the_fixed_form() {
        let line = "BAR gso.doorbells_per_packet ours=0.0310 peer=1.00 goal=<=0.04 unit=1";
        assert_eq!(bar().line(), line);
        let alone = Bar {
            peer: None,
            ..bar()
        };
        assert!(alone.line().contains(" peer=- "));
        let json = r#"{"bar":"gso.doorbells_per_packet","ours":0.031,"peer":1.0,"goal":"<= 0.04","unit":"1"}"#;
        assert_eq!(bar().json(), json);
        assert!(alone.json().contains(r#""peer":null"#));
    }

    #[test]
    fn goals_are_judged() {
        assert!(Goal::AtMost(20.0).met(20.0) && !Goal::AtMost(20.0).met(20.1));
        assert!(Goal::AtLeast(2.0).met(2.0) && !Goal::AtLeast(2.0).met(1.9));
        assert!(Goal::Near(1.0, 0.01).met(0.995) && !Goal::Near(1.0, 0.01).met(1.02));
        assert!(Goal::Open.met(f64::MAX));
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }
}
