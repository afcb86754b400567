"""Grafana boards, written as JSON into the chart that ships them: `make dashboards`."""
