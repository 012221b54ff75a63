// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Suggestions for mistyped names.

/// Returns up to three of `names` that look like `wanted`, the most alike first.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let wanted = wanted.to_ascii_lowercase();
    let mut scored: Vec<(f64, &str)> = names
        .into_iter()
        .map(|name| {
            let near = strsim::jaro_winkler(&wanted, &name.to_ascii_lowercase());
            // `gro-flush` for `gro-flush-timeout`: a part of a name is a good guess, too.
            let part = wanted.len() >= 3 && name.contains(wanted.as_str());
            // `mut` for `mtu`: one slip of the fingers counts for much in a short name.
            let slip = wanted.len() >= 3 && strsim::osa_distance(&wanted, name) == 1;
            (if part || slip { near.max(0.9) } else { near }, name)
        })
        .filter(|(score, _)| *score >= 0.8)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.dedup_by(|a, b| a.1 == b.1);
    scored
        .into_iter()
        .take(3)
        .map(|(_, name)| name.to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_find_the_name() {
        let names = ["batching", "batch-limit", "gro-flush-timeout", "mtu"];
        assert_eq!(nearest("batchin", names)[0], "batching");
        assert_eq!(nearest("gro_flush", names)[0], "gro-flush-timeout");
        assert_eq!(nearest("flush", names), ["gro-flush-timeout"]);
        assert_eq!(nearest("MTU", names), ["mtu"]);
        assert_eq!(nearest("mut", names), ["mtu"]);
        assert!(nearest("zzzz", names).is_empty());
    }
}
