"""What a person looks at: terminal, page, plots and pictures."""
