"""Board games of the 2048 family: rules, chance, and what every other room builds on."""
