"""`dragoman doctor`: looks at everything that Dragoman needs, says what is wrong and how to mend it."""
