"""What a terminal shows: output that cannot fail or deceive, tables, and how far a study is."""
