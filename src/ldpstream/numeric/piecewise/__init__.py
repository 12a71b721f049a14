"""The piecewise mechanism: an output near the value, in a band of the width that errs least."""
