"""The hybrid mechanism: a coin picks piecewise or Duchi's method, for the least worst case."""
