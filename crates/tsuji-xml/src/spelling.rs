//! How near a word is to the one that was meant.

/// How many letters must be put in, left out or changed to turn one word into the other.
pub fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_put_in_left_out_and_changed_count() {
        for (a, b, expect) in [
            ("", "", 0),
            ("shm", "shm", 0),
            ("", "shm", 3),
            ("sharm", "shm", 2),
            ("kitten", "sitting", 3),
            ("größe", "grosse", 3),
        ] {
            assert_eq!((distance(a, b), distance(b, a)), (expect, expect), "{a} {b}");
        }
    }
}
