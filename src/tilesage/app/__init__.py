"""What a person looks at: live views in the terminal, films and plots, and the page (web/).

In come players, runs and records; out goes what a screen shows, and back come keys, clicks and words.
"""
