"""Networks: the default, and what each of their options gains."""
