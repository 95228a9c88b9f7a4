"""Lines of a conversation: styled, broken at spaces, printed once."""
