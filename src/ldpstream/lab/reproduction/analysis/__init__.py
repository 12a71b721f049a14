"""The paper's analysis: its formulas, and what simulations give in their place."""
