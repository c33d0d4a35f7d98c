"""Measures rclpy on rmw_tsuji and on rmw_fastrtps_cpp by turns, and prints a line a figure: what to expect, not what to assert.

  figures.py --library FILE --python DISTRIBUTION=PROGRAM… [--turns NUMBER]
"""

import argparse
import os
import statistics
import tempfile

import run
import table

MODULE = 'figures'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--library', required=True)
    parser.add_argument('--python', action='append', required=True)
    parser.add_argument('--turns', type=int, default=3)
    asked = parser.parse_args()
    # distribution, row, middleware: what each turn gave
    found, refused = {}, {}
    with tempfile.TemporaryDirectory(prefix='tsuji-wheels-') as folder:
        runner = run.Runner(dict(it.split('=', 1) for it in asked.python), os.path.abspath(asked.library), folder)
        for distribution in runner.pythons:
            texts = [text for text, _ in run.rows_of(runner, distribution, [MODULE])[MODULE]]
            for rmw in [table.TSUJI, table.FASTRTPS] * asked.turns:
                group = run.Group(distribution, rmw, rmw, MODULE, texts)
                runner.run(group)
                for text in texts:
                    how, why = group.ended[text]
                    if how == run.OK:
                        found.setdefault((distribution, text), {}).setdefault(rmw, []).append(group.values[text])
                    else:
                        refused[distribution, rmw, text] = why
    print(f'{"microseconds, median of " + str(asked.turns) + " turns":34}{"rmw_tsuji":>20}{"rmw_fastrtps_cpp":>20}')
    print(f'{"":34}{"median / p99":>20}{"median / p99":>20}')
    for (distribution, text), values in found.items():
        cells = ''.join(f'{cell(values.get(rmw)):>20}' for rmw in (table.TSUJI, table.FASTRTPS))
        print(f'{distribution + ", " + text:34}{cells}')
    for (distribution, rmw, text), why in refused.items():
        print(f'not measured: {distribution}, {rmw}, {text}: {why}')


def cell(turns):
    if not turns:
        return '-'
    return ' / '.join(f'{statistics.median(it[key] for it in turns):.0f}' for key in ('median', 'p99'))


if __name__ == '__main__':
    main()
