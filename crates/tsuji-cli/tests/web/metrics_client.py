"""Reads the metrics of a bridge with the parsers of Prometheus's own client library, in both formats. Says a line for each."""

import sys
import urllib.request

from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families

ACCEPTED = {
    'prometheus': ('text/plain', text_string_to_metric_families),
    'openmetrics': (
        'application/openmetrics-text; version=1.0.0',
        openmetrics_parser.text_string_to_metric_families,
    ),
}
FLOW = {'topic': '/chatter', 'publisher': '/talker'}


def families(accept, parse):
    request = urllib.request.Request(f'http://127.0.0.1:{sys.argv[1]}/metrics', headers={'Accept': accept})
    with urllib.request.urlopen(request, timeout=60) as response:
        return {family.name: family for family in parse(response.read().decode())}


def value(found, family, sample, labels):
    samples = [it for it in found[family].samples if it.name == sample and labels.items() <= it.labels.items()]
    assert len(samples) == 1, samples
    return samples[0].value


for name, (accept, parse) in ACCEPTED.items():
    found = families(accept, parse)
    assert found['tsuji_flow_sent_samples'].type == 'counter', found['tsuji_flow_sent_samples']
    assert found['tsuji_flow_latency_seconds'].type == 'summary'
    family = {'prometheus': 'tsuji_flow_info', 'openmetrics': 'tsuji_flow'}[name]
    flows = value(found, family, 'tsuji_flow_info', FLOW | {'transport': 'shm'})
    sent = value(found, 'tsuji_flow_sent_samples', 'tsuji_flow_sent_samples_total', FLOW)
    latency = value(
        found, 'tsuji_flow_latency_seconds', 'tsuji_flow_latency_seconds', FLOW | {'quantile': '0.5'})
    print(name, flows, 0 < sent, 0 < latency < 60, found['tsuji_bridge_connections'].samples[0].value)
