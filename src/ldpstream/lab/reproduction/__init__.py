"""The evaluation of the LDP-IDS paper (SIGMOD 2022, section 7), as data: studies and claims."""
