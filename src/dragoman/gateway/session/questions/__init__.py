"""Questions of an agent to the user: permissions and elicitations."""
