"""Monitoring for operators: metrics, health, traces, traffic."""
