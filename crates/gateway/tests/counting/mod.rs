//! A counting source, and the values that must arrive from it.

#![allow(dead_code)] // each test uses some of it

use std::collections::HashSet;

/// A source and a tag `counter/Count` that counts from 1 to `last` in a few seconds, then stays. The times of its values are
/// seconds apart.
pub(crate) fn source(last: u32) -> String {
    let script = format!(
        "n=0; while [ $n -lt {last} ]; do for i in 1 2 3 4 5; do n=$((n+1)); \
         echo '{{\"name\":\"Count\",\"value\":'$n',\"time\":'$((1700000000+n))'}}'; done; sleep 0.005; done; exec sleep 1000"
    );
    format!(
        "[[source]]\nname = \"counter\"\ntype = \"program\"\ncommand = [\"sh\", \"-c\", {script:?}]\n\
         [[tag]]\nsource = \"counter\"\nname = \"Count\"\ntype = \"Int64\"\n"
    )
}

/// The numbers that arrived, each key once.
pub(crate) fn once<'a>(arrived: impl IntoIterator<Item = (&'a str, i64)>) -> Vec<i64> {
    let mut seen = HashSet::new();
    arrived.into_iter().filter(|(key, _)| seen.insert((*key).to_owned())).map(|(_, number)| number).collect()
}
