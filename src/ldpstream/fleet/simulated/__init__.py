"""Simulated devices by the million: what a device keeps is a row of arrays, not a file.

They enrol, sign and keep their budgets as real devices do, and a collector cannot tell them from
real ones. But debits are on disk only when the fleet ends, and reports are drawn by the
laboratory's halves of the oracles. So they measure a collector, and protect nobody.
"""
