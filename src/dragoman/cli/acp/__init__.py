"""`dragoman acp`: ACP on stdio or a port."""
