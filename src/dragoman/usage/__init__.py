"""What turns used, in tokens and money: a ledger in the store's database, and reports on it."""
