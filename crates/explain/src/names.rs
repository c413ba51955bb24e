//! Finds the closest match for a misspelt name.

/// The name closest to a misspelt one, or `None` if none is close enough.
#[must_use]
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = wanted.to_lowercase();
    let len = wanted.chars().count();
    names
        .into_iter()
        // Skip names whose length alone exceeds the limit: comparing megabytes of text would take minutes.
        .filter(|name| len <= name.chars().count() + 2 + name.len() / 4)
        // Edit distance: characters changed, added, removed or swapped with the next one.
        .map(|name| (strsim::osa_distance(&wanted, &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= 1 + name.len() / 4)
        .min()
        .map(|(_, name)| name)
}

/// A hint for a message: the closest name, or a list of all names.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_megabytes_matches_nothing_quickly() {
        let long = "x".repeat(50 << 20);
        assert_eq!(nearest(&long, core::iter::repeat_n("server", 100)), None);
    }

    #[test]
    fn misspelt_names_are_found() {
        assert_eq!(nearest("xyzxyz", ["Read", "Write"]), None);
        assert_eq!(nearest("raed", ["Read", "Write"]), Some("Read"));
        assert_eq!(meant("raed", ["Read", "Write"]), "did you mean \"Read\"?");
        assert_eq!(meant("xyzxyz", ["Read", "Write"]), "there are Read, Write");
    }
}
