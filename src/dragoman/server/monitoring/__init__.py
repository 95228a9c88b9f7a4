"""What operators watch: metrics, health, traces, traffic."""
