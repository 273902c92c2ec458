"""The one exception for input that breaks a rule."""


class InvalidInput(ValueError):
    """Input that breaks a rule: the message says the rule, what arrived, and the fix."""
