"""Questions of an agent to the user: permissions and elicitations, and the policy that answers some of them."""
