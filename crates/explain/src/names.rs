//! The nearest of some names to a misspelt one.

/// The name that a misspelt one is nearest to, if it is near.
#[must_use]
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    names
        .into_iter()
        .map(|name| (distance(&wanted.to_lowercase(), &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= 1 + name.len() / 4)
        .min()
        .map(|(_, name)| name)
}

/// As the hint of a message: the name that is near, or else all names.
#[must_use]
pub fn meant<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(wanted, names.clone()) {
        Some(near) => format!("did you mean {near:?}?"),
        None => {
            let names: Vec<&str> = names.into_iter().collect();
            format!("there are {}", names.join(", "))
        }
    }
}

/// Characters to be changed, added, left out or swapped with the next one.
fn distance(one: &str, two: &str) -> usize {
    let (one, two): (Vec<char>, Vec<char>) = (one.chars().collect(), two.chars().collect());
    let at = |row: &[usize], place: usize| row.get(place).copied().unwrap_or_default();
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=two.len()).collect();
    for (down, char) in one.iter().enumerate() {
        let mut next = vec![down + 1];
        for (across, other) in two.iter().enumerate() {
            let changed = at(&row, across) + usize::from(other != char);
            let mut best = changed.min(at(&row, across + 1) + 1).min(at(&next, across) + 1);
            let is_swapped = down > 0
                && across > 0
                && one.get(down - 1) == Some(other)
                && two.get(across - 1) == Some(char);
            if is_swapped {
                best = best.min(at(&before, across - 1) + 1);
            }
            next.push(best);
        }
        before = core::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_levenshtein() {
        for (one, two, expected) in
            [("", "abc", 3), ("abc", "abc", 0), ("reed", "read", 1), ("kitten", "sitting", 3)]
        {
            assert_eq!(distance(one, two), expected, "{one} {two}");
        }
        assert_eq!(nearest("xyzxyz", ["Read", "Write"]), None);
        assert_eq!(nearest("raed", ["Read", "Write"]), Some("Read"));
        assert_eq!(meant("raed", ["Read", "Write"]), "did you mean \"Read\"?");
        assert_eq!(meant("xyzxyz", ["Read", "Write"]), "there are Read, Write");
    }
}
