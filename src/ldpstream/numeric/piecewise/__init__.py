"""The piecewise mechanism: a report is near the value, in a band of the width that errs least."""
