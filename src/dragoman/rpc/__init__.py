"""JSON-RPC between two peers: ids, correlation both ways, cancellation, batches."""
