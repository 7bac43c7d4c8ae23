"""The Python interface: run scenarios, read runs back as tables, compare, draw and explain them."""
