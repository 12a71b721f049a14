"""The seven mechanisms of LDP-IDS as allocations over divisions of one resource."""
