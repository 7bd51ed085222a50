"""Files for Prometheus and Grafana: scrape configuration, alert rules, dashboards."""
