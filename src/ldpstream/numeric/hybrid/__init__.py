"""The hybrid mechanism: piecewise or Duchi's method by a coin, so that no value errs more."""
