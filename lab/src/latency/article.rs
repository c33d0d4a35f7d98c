//! What the article of 2016 found of the six patterns, beside what was measured here.

use crate::report::{Cell, Row, Table};

/// Mean, median and most, in s as the article has them.
const AUTHORS: [(&str, [f64; 3]); 6] = [
    ("one_node", [0.001_401_18, 0.001_398_28, 0.004_545_32]),
    ("one_node_pointer", [5.4087e-06, 3.53647e-06, 0.000_275_296]),
    ("two_nodes", [0.002_353_23, 0.002_360_79, 0.008_257_29]),
    ("two_nodes_pointer", [0.000_883_81, 0.000_873_49, 0.003_089_1]),
    ("two_components", [0.000_689_175, 0.000_686_938, 0.003_333_91]),
    ("two_components_pointer", [5.41813e-05, 4.98603e-05, 0.000_194_368]),
];

/// Those of the patterns that have rows; nothing where none has.
pub(super) fn table(rows: &[Row]) -> Option<Table> {
    let median = |pattern: &str, transport: &str| {
        let own = rows.iter().find(|it| it.case == pattern && it.transport.starts_with(transport));
        own.map_or(Cell::Nothing, |it| Cell::Number(it.latency_us[1]))
    };
    let is_measured = |pattern: &str| rows.iter().any(|it| it.case == pattern);
    let line = |(pattern, seconds): (&str, [f64; 3])| {
        let mut line = vec![Cell::Text(pattern.to_owned())];
        line.extend(seconds.map(|it| Cell::Number(it * 1e6)));
        line.extend(["ros1:", "tsuji:"].map(|transport| median(pattern, transport)));
        line
    };
    let measured = AUTHORS.into_iter().filter(|(pattern, _)| is_measured(pattern));
    let lines: Vec<_> = measured.map(line).collect();
    let columns = [
        "pattern",
        "article mean µs",
        "median µs",
        "max µs",
        "ROS 1 here median µs",
        "tsuji here median µs",
    ];
    let note = "The article's are of ROS 1 on a laptop of its time; its two components are nodelets. There the callback \
                publishes the next picture itself, so in one node no thread is woken.";
    let title = "The six patterns in the article of 2016";
    (!lines.is_empty()).then(|| Table::new(title, &columns, lines, note))
}

#[cfg(test)]
mod tests {
    use crate::crew::Block;

    use super::*;

    #[test]
    fn patterns_stand_beside_the_articles() {
        let block = Block { latency_us: vec![3.0], count: 1, ..Block::default() };
        let row =
            |case: &str, transport: &str| Row::of(case, transport, 1, std::slice::from_ref(&block));
        let rows =
            [row("two_nodes", "tsuji:shm"), row("two_nodes", "raw:x"), row("loan-64", "raw:x")];
        let table = table(&rows).unwrap();
        assert_eq!(table.rows.len(), 1);
        let told = format!("{:?}", table.rows[0]);
        assert!(told.starts_with(r#"[Text("two_nodes"), Number(2353.23)"#), "{told}");
        assert!(told.ends_with("Nothing, Number(3.0)]"), "{told}");
    }

    #[test]
    fn without_a_pattern_there_is_no_table() {
        assert!(table(&[]).is_none());
    }
}
